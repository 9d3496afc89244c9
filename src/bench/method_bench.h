// RunMethodBench: what a method costs in time, on this machine and in the lab.
//
// Whole runs of the default task with one core for rollouts and one for training,
// method after method, again and again: what PACE adds to Async's step, with the
// interval of its median, and how much faster Async is than Sync. Beside them the
// same in the lab, whose costs were fitted to this machine: decoding to a
// generation, training to the Sync runs.
//
// Thread-safety: none; wants the machine to itself.
#ifndef PACE_BENCH_METHOD_BENCH_H_
#define PACE_BENCH_METHOD_BENCH_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace pace {

struct MethodBenchOptions {
  int64_t repetitions = 10;  // runs of each method
  int64_t num_steps = 25;    // of a run
};

// The JSON report.
Result<std::string> RunMethodBench(const MethodBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_METHOD_BENCH_H_
