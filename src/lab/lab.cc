#include "lab/lab.h"

#include <utility>

#include "cluster/cost_model.h"
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

Result<LabResult> RunLab(const Settings& settings, const Policy& policy,
                         const LabOptions& options) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_RETURN_IF_ERROR(CheckLabSettings(settings));
  PACE_ASSIGN_OR_RETURN(CostModel costs,
                        CostModel::Create(settings.model, settings.gpu, settings.cluster));
  LabDriver driver(settings, policy, options, std::move(costs));
  return driver.Run();
}

}  // namespace pace
