#include "runtime/runtime.h"

#include <memory>
#include <utility>

#include "runtime/runtime_driver.h"

namespace pace {

Result<RunResult> RunTraining(const Settings& settings, const Policy& policy,
                              const RunSetup& setup) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  RunClock clock;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<TrainingRun> run,
                        TrainingRun::Create(settings, policy, clock, setup));
  RuntimeDriver driver(settings, policy, setup, clock, std::move(run));
  return driver.Run();
}

}  // namespace pace
