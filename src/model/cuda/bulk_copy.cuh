// Copies from global into shared memory by the copy engine, and the barriers that they complete.
#ifndef PACE_MODEL_CUDA_BULK_COPY_CUH_
#define PACE_MODEL_CUDA_BULK_COPY_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "model/cuda/launch.cuh"

namespace pace::cuda {

__device__ inline uint32_t SharedAddress(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// compute-sanitizer's racecheck reports shared memory that is handed over by one lane's arrival
// after __syncwarp, or by bar.arrive. With PACE_RACECHECK, which only a test defines, every lane
// arrives and every warp waits.
#ifdef PACE_RACECHECK
inline constexpr bool kEveryThreadWaits = true;
#else
inline constexpr bool kEveryThreadWaits = false;
#endif
inline constexpr uint32_t kArrivalsOfWarp = kEveryThreadWaits ? kWarp : 1;

// A barrier in shared memory. A phase ends when all arrivals and all expected bytes are there.
struct CopyBarrier {
  uint64_t state;

  // By one thread; a fence and a barrier of the block follow.
  __device__ void Init(uint32_t num_arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(&state)),
                 "r"(num_arrivals)
                 : "memory");
  }
  __device__ void Arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(&state))
                 : "memory");
  }
  // By all lanes of a warp, which together count as kArrivalsOfWarp.
  __device__ void ArriveAsWarp(int lane) {
    __syncwarp();
    if (kEveryThreadWaits || lane == 0) Arrive();
  }
  __device__ void ArriveAndExpect(uint32_t num_bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(&state)),
        "r"(num_bytes)
        : "memory");
  }
  // `parity`: of the phase that is waited for, 0 for the first.
  __device__ void Wait(uint32_t parity) {
    asm volatile(
        "{ .reg .pred p;\n"
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@!p bra WAIT; }" ::"r"(SharedAddress(&state)),
        "r"(parity)
        : "memory");
  }
};

// Makes barriers visible to the copy engine.
__device__ inline void FenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// What earlier kernels wrote by ordinary stores, before the copy engine reads it.
__device__ inline void FenceForCopies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// By one thread. REQUIRES: all multiples of 16; a phase of `barrier` that expects the bytes
__device__ inline void CopyToShared(void* to, const void* from, uint32_t num_bytes,
                                    CopyBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(SharedAddress(to)),
      "l"(from), "r"(num_bytes), "r"(SharedAddress(&barrier.state))
      : "memory");
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_BULK_COPY_CUH_
