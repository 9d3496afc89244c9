#include "sim/simulation.h"

#include "cluster/cost_model.h"
#include "sim/driver.h"
#include "sim/workload.h"

namespace pace {
namespace {

Status CheckFits(const Settings& settings, const CostModel& costs) {
  const int64_t longest = settings.workload.prompt_tokens + settings.workload.max_tokens;
  if (longest > costs.KvCapacity()) {
    return InvalidArgument("workload.max_tokens = ", settings.workload.max_tokens,
                           ": one response with its prompt needs ", longest,
                           " tokens of KV, an engine has ", costs.KvCapacity(),
                           " (raise cluster.tensor_parallel or cluster.memory_share)");
  }
  if (settings.cluster.failure_every_s > 0 && settings.cluster.layout == Layout::kColocated) {
    return InvalidArgument("cluster.failure_every_s = ", settings.cluster.failure_every_s,
                           ": must be 0 where cluster.layout is colocated (a lost engine would "
                           "take the trainer with it)");
  }
  return Status::Ok();
}

}  // namespace

Result<SimResult> RunSimulation(const Settings& settings, const SimOptions& options) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_ASSIGN_OR_RETURN(const auto costs,
                        CostModel::Create(settings.model, settings.gpu, settings.cluster));
  PACE_RETURN_IF_ERROR(CheckFits(settings, costs));
  PACE_ASSIGN_OR_RETURN(
      const auto workload,
      Workload::Create(settings.workload, static_cast<uint64_t>(settings.run.seed)));
  Driver driver(settings, options, costs, workload);
  return driver.Run();
}

}  // namespace pace
