// Which GPU a rank uses: CUDA_VISIBLE_DEVICES is set to that one, before CUDA is initialised, so
// that all threads and libraries of the process use it as device 0.
//
//   SelectGpu(environment);  // first of all, while there is one thread
//
// Ranks of a machine take its GPUs in turn; more ranks than GPUs share them, which NCCL allows from
// 2.30 under NCCL_MULTI_RANK_GPU_ENABLE=1 alone.
// Thread-safety: GpuOfRank is a function of its arguments; SelectGpu writes to the environment.
#ifndef PACE_RANKS_GPU_CHOICE_H_
#define PACE_RANKS_GPU_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ranks/rank_environment.h"

namespace pace {

// The entry of `visible` (the present CUDA_VISIBLE_DEVICES, or none) for this rank of the machine;
// none: there is no GPU. `num_gpus` counts where `visible` is none.
std::optional<std::string> GpuOfRank(int64_t local_rank, const std::optional<std::string>& visible,
                                     int64_t num_gpus);

// GPUs of the machine, as its driver's management library (NVML) counts them; 0 without a driver.
// Does not initialise CUDA.
int64_t CountGpus();

// Does nothing where there is no GPU.
void SelectGpu(const RankEnvironment& environment);

// Equal on two ranks if they use the same GPU: host name and the GPU's id. Containers and Slurm may
// give two ranks different GPUs under the same number. Call it after SelectGpu.
std::string GpuPlace();

}  // namespace pace

#endif  // PACE_RANKS_GPU_CHOICE_H_
