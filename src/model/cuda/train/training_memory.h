// The memory that training holds of a GPU. Without tensors, so that a plan of memory compiles
// without LibTorch; training_functions.cc defines it. Thread-safety: as
// LibTorch's operations.
#ifndef PACE_MODEL_CUDA_TRAIN_TRAINING_MEMORY_H_
#define PACE_MODEL_CUDA_TRAIN_TRAINING_MEMORY_H_

#include <cstdint>

#include "core/status.h"

namespace pace {

// The most that training may hold of the GPU from now on, workspaces included; an error where
// there is no GPU.
Status LimitTrainingMemory(int64_t num_bytes);
// What LibTorch may still take of the GPU, less a margin for what it cannot use. The margin is
// larger where the sizes of tensors change from pass to pass.
int64_t FreeTrainingMemory(bool sizes_change);
// The most that training has held of the GPU.
int64_t MostTrainingMemory();
// Returns unused memory of LibTorch to the device and resets the maximum.
void ReleaseTrainingMemory();

}  // namespace pace

#endif  // PACE_MODEL_CUDA_TRAIN_TRAINING_MEMORY_H_
