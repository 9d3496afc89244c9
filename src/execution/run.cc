#include "execution/run.h"

#include "execution/engine_maker.h"
#include "execution/learner_options.h"
#include "execution/prompt_source.h"
#include "judge/python_policy.h"
#include "task/benchmark.h"

namespace pace {

Result<RunResources> RunResources::Acquire(const Settings& settings, const Policy& policy,
                                           const GpuShare& share) {
  RunResources resources;
  PACE_ASSIGN_OR_RETURN(resources.executor, ToolExecutor::Open(settings.tools));
  PACE_ASSIGN_OR_RETURN(resources.rewards, OpenRewards(settings));
  PACE_RETURN_IF_ERROR(PrepareGpu(settings, policy.config, share));
  return resources;
}

Result<std::shared_ptr<RewardPool>> OpenRewards(const Settings& settings) {
  PACE_ASSIGN_OR_RETURN(const auto reward, OwnRewardOf(settings.task.verifier));
  if (!reward.has_value()) return std::shared_ptr<RewardPool>();
  Result<std::shared_ptr<RewardPool>> pool = RewardPool::Open(*reward, settings.reward);
  if (!pool.ok()) return pool.status().At("task.verifier");
  return pool;
}

Status CheckRun(const Settings& settings, const Policy& policy) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_RETURN_IF_ERROR(TrainerOptionsOf(settings).status());
  PACE_RETURN_IF_ERROR(OpenAdmissionPolicy(settings.admission, settings.batch.num_groups,
                                           static_cast<uint64_t>(settings.run.seed))
                           .status());
  PACE_RETURN_IF_ERROR(CheckContext(settings, policy));
  PACE_ASSIGN_OR_RETURN(const PromptSource prompt_source, PromptSource::Create(settings, policy));
  PACE_RETURN_IF_ERROR(prompt_source.RequestFor(GroupId(0), PromptIndex(0)).status());
  return LoadBenchmarks(settings.task).status();
}

}  // namespace pace
