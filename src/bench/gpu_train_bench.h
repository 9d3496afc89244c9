// Training speed on a GPU: `pace bench train --device cuda`, beside
// `transformers` and the GPU's own limits.
//
// Random weights of a shape, float32 masters and moments, bf16 computation, layers
// computed again in the backward pass; whole steps of a Trainer on sequences of one
// length. A rollout engine's weights and cache lie beside it, as in a run, and take
// the new weights after each step: the sync. Then the parts of a step one by one,
// each against its limit.
//
// Thread-safety: none; wants the GPU to itself.
#ifndef PACE_BENCH_GPU_TRAIN_BENCH_H_
#define PACE_BENCH_GPU_TRAIN_BENCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

struct GpuTrainBenchOptions {
  std::vector<std::string> shapes = {"qwen3-4b", "qwen3-0.6b"};
  int64_t repetitions = 5;
  bool python = true;
  int64_t num_sequences = 8;
  int64_t length = 2048;         // of each
  int64_t token_budget = 16384;  // of one forward pass
  int64_t kv_gib = 20;           // of the engine beside it

  [[nodiscard]] Status Validate() const;
};

// One JSON object on one line, as RunControllerBench.
Result<std::string> RunGpuTrainBench(const GpuTrainBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_GPU_TRAIN_BENCH_H_
