#include "lab/lab.h"

#include <utility>

#include "cluster/cost_model.h"
#include "core/clock.h"
#include "execution/learner_options.h"
#include "lab/lab_driver.h"

namespace pace {

Status CheckLabSettings(const Settings& settings) {
  if (settings.cluster.failure_every_s > 0) {
    return InvalidArgument("cluster.failure_every_s = ", settings.cluster.failure_every_s,
                           ": the lab loses no engines (must be 0; pace sim does)");
  }
  if (settings.cluster.rescore_blocks) {
    return InvalidArgument(
        "cluster.rescore_blocks = true: in the lab the trainer never waits for "
        "rescoring (pace sim does)");
  }
  return CheckPrefixScores(settings, /*lab=*/true);
}

Result<RunResult> RunLab(const Settings& settings, const Policy& policy, const RunSetup& setup) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_RETURN_IF_ERROR(CheckLabSettings(settings));
  PACE_ASSIGN_OR_RETURN(const CostModel costs,
                        CostModel::Create(settings.model, settings.gpu, settings.cluster));
  VirtualClock clock;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<TrainingRun> run,
                        TrainingRun::Create(settings, policy, clock, setup));
  LabDriver driver(settings, policy, setup, costs, clock, std::move(run));
  return driver.Run();
}

}  // namespace pace
