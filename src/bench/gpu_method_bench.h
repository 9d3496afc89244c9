// What a method costs in time where rollouts and training share one GPU:
// `pace bench methods --device cuda`.
//
// Two tasks: the default one, and a network of Qwen3-0.6B's shape whose responses have
// prescribed lengths (generation.mean_tokens) with an exponential tail up to a budget
// of 2,048 tokens, the same for every method. Whole runs, method after method, again and again:
// PACE's step over Async's, how much faster Async is than Sync, and how much of PACE's rescoring
// the trainer waits for.
//
// Thread-safety: none; wants the GPU to itself.
#ifndef PACE_BENCH_GPU_METHOD_BENCH_H_
#define PACE_BENCH_GPU_METHOD_BENCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

struct GpuMethodBenchOptions {
  std::vector<std::string> tasks = {"tiny", "qwen3-0.6b"};
  int64_t repetitions = 5;                                // runs of each method
  int64_t num_steps = 25;                                 // of a run
  std::function<void(const std::string&)> listener = {};  // told after each run

  [[nodiscard]] Status Validate() const;
};

// The JSON report.
Result<std::string> RunGpuMethodBench(const GpuMethodBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_GPU_METHOD_BENCH_H_
