// Training speed: `pace bench train`, beside a plain PyTorch and `transformers`
// loop on the same weights, sequences and threads, in the same rounds.
//
// Also the memory of a step on both sides, the speed against the machine's
// limit for matrix products, and whether both sides compute the same loss and
// gradient norm: if not, there is an error instead of a report.
#ifndef PACE_BENCH_TRAIN_BENCH_H_
#define PACE_BENCH_TRAIN_BENCH_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace pace {

struct TrainBenchOptions {
  // A Hugging Face folder; empty = BenchShape() with random weights.
  std::string model{};
  int64_t repetitions = 5;
  bool python = true;
  // Measured with one thread and with this many.
  int64_t num_threads = 2;
  // Tokens in flight, over all threads.
  int64_t token_budget = 2048;

  [[nodiscard]] Status Validate() const;
};

// One JSON object on one line, as RunControllerBench. A build without LibTorch
// has no trainer, and says so.
Result<std::string> RunTrainBench(const TrainBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_TRAIN_BENCH_H_
