// How fast isolated programs run: `pace bench sandbox`, beside starting a bare
// python3 for each, as many at once, in the same rounds.
#ifndef PACE_BENCH_SANDBOX_BENCH_H_
#define PACE_BENCH_SANDBOX_BENCH_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace pace {

struct SandboxBenchOptions {
  int64_t repetitions = 7;
  double seconds_per_measurement = 2;
  int64_t num_callers = 16;
  std::string python = "python3";
};

// One JSON object on one line, as RunControllerBench. Where sympy is missing its
// measurements are left out, and `skipped` says so.
Result<std::string> RunSandboxBench(const SandboxBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_SANDBOX_BENCH_H_
