// What decoding costs on this machine, as settings with which the lab predicts it.
//
// A pass of a rollout engine takes a fixed time, a time per row that continues a
// response, a time per token of their contexts and a time per prefilled row. The
// four are fitted to the passes of a real generation, each the fastest of a few
// repetitions, so that other work on the machine counts little.
//
//   Result<RolloutCosts> costs = MeasureRolloutCosts(settings, policy);
//   PACE_RETURN_IF_ERROR(ApplyCosts(*costs, policy, table_path, settings));
//
// Thread-safety: pure functions; pin the calling thread to measure one core.
#ifndef PACE_BENCH_MACHINE_COSTS_H_
#define PACE_BENCH_MACHINE_COSTS_H_

#include <array>
#include <span>
#include <string>

#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"

namespace pace {

struct RolloutCosts {
  double pass = 0;  // all in seconds
  double row = 0;
  double context_token = 0;
  double prefill_row = 0;
  double residual = 0;  // of the fit, relative: mean |error| / mean time
};

struct PassSample {
  double rows = 0;
  double context_tokens = 0;
  double prefill_rows = 0;
  double seconds = 0;
};

// Least squares without negative costs: what would be negative is left out.
RolloutCosts FitCosts(std::span<const PassSample> passes);

Result<RolloutCosts> MeasureRolloutCosts(const Settings& settings, const Policy& policy);

// One engine and one trainer at these costs. Writes the decode table to `path`.
// Training time stays as it is: peak_tflops is what prefill reaches.
Status ApplyCosts(const RolloutCosts& costs, const Policy& policy, const std::string& path,
                  Settings& settings);

}  // namespace pace

#endif  // PACE_BENCH_MACHINE_COSTS_H_
