// Generation speed: `pace bench rollout`, beside `transformers` generate() on
// the same weights, prompts and threads, in the same rounds.
//
// Also what a weight sync costs in mid-response, with and without prefix scores,
// and the speed against the machine's limit for matrix products.
#ifndef PACE_BENCH_ROLLOUT_BENCH_H_
#define PACE_BENCH_ROLLOUT_BENCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

struct RolloutBenchOptions {
  // A Hugging Face folder; empty = BenchShape() with random weights.
  std::string model{};
  int64_t repetitions = 5;
  bool python = true;
  int64_t num_threads = 2;
  int64_t prompt_tokens = 32;
  int64_t new_tokens = 128;
  std::vector<int64_t> batches = {1, 8, 64};

  [[nodiscard]] Status Validate() const;
};

// One JSON object on one line, as RunControllerBench.
Result<std::string> RunRolloutBench(const RolloutBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_ROLLOUT_BENCH_H_
