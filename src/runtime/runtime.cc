#include "runtime/runtime.h"

#include "runtime/runtime_driver.h"

namespace pace {

Result<TrainingResult> RunTraining(const Settings& settings, const Policy& policy,
                                   const TrainingOptions& options) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  RuntimeDriver driver(settings, policy, options);
  return driver.Run();
}

}  // namespace pace
