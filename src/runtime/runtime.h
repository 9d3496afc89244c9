// RunTraining: a whole run on this machine, under the wall clock.
//
// Engines generate on their threads while a trainer updates on its own; the
// calling thread drives the coordinator. Weights are copied when a step ends, so
// training continues at once and engines swap at their next token.
//
//   Result<RunResult> result = RunTraining(settings, policy, {.checkpoints = folder});
//
// Thread-safety: one run at a time in a thread; runs share nothing.
#ifndef PACE_RUNTIME_RUNTIME_H_
#define PACE_RUNTIME_RUNTIME_H_

#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"
#include "execution/run.h"

namespace pace {

Result<RunResult> RunTraining(const Settings& settings, const Policy& policy,
                              const RunSetup& setup);

}  // namespace pace

#endif  // PACE_RUNTIME_RUNTIME_H_
