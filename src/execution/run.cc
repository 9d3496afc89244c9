#include "execution/run.h"

#include "execution/engine_maker.h"
#include "execution/gpu_plan.h"
#include "execution/learner_options.h"
#include "execution/prompt_source.h"
#include "task/benchmark.h"

namespace pace {

Result<RunResources> RunResources::Acquire(const Settings& settings, const Policy& policy) {
  RunResources resources;
  PACE_ASSIGN_OR_RETURN(resources.executor, ToolExecutor::Open(settings.tools));
  PACE_RETURN_IF_ERROR(PrepareGpu(settings, policy.config));
  return resources;
}

Status CheckRun(const Settings& settings, const Policy& policy) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_RETURN_IF_ERROR(TrainerOptionsOf(settings).status());
  PACE_RETURN_IF_ERROR(CheckContext(settings, policy));
  PACE_ASSIGN_OR_RETURN(const PromptSource prompt_source, PromptSource::Create(settings, policy));
  PACE_RETURN_IF_ERROR(prompt_source.RequestFor(GroupId(0), PromptIndex(0)).status());
  return LoadBenchmarks(settings.task).status();
}

}  // namespace pace
