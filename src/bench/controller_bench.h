// What the controller costs: `pace bench controller`.
//
// Verdicts, beginnings of steps, coordinator events and pool operations on one
// thread, each against its limit; how cost grows with the pool; memory per
// group; and the same rules in naive Python, measured in the same rounds.
#ifndef PACE_BENCH_CONTROLLER_BENCH_H_
#define PACE_BENCH_CONTROLLER_BENCH_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace pace {

struct BenchOptions {
  int64_t repetitions = 7;
  double seconds_per_measurement = 0.2;
  bool python = true;  // measure the Python peer too
  // The occupancies whose costs are compared.
  int64_t small_pool = 1'000;
  int64_t large_pool = 1'000'000;
};

// One JSON object on one line. A missed limit is not an error: the object says
// `"ok": false`, as a whole and for the measurement.
Result<std::string> RunControllerBench(const BenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_CONTROLLER_BENCH_H_
