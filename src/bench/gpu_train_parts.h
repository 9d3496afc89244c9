// The parts of a training step on a GPU, each alone: how often a step runs it,
// how long it takes, and what the GPU's limits would allow.
#ifndef PACE_BENCH_GPU_TRAIN_PARTS_H_
#define PACE_BENCH_GPU_TRAIN_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/step_profile.h"
#include "model/model_config.h"

namespace pace {

struct GpuLimits {
  double flops = 0;  // per second, of bf16 products
  double bytes = 0;  // per second, of copies
};
// Of large products, as fast as LibTorch makes them.
double MeasureGpuFlops();

struct PartsBatch {
  int64_t num_sequences = 0;
  int64_t length = 0;
};
// One forward pass over the batch with layers computed again, and one update.
std::vector<ProfilePart> MeasureStepParts(const ModelConfig& config, const PartsBatch& batch,
                                          const GpuLimits& limits);

}  // namespace pace

#endif  // PACE_BENCH_GPU_TRAIN_PARTS_H_
