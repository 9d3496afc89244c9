// Eight neighbouring elements of a row, as floats.
#ifndef PACE_MODEL_CUDA_TRAIN_ROW_VECTOR_CUH_
#define PACE_MODEL_CUDA_TRAIN_ROW_VECTOR_CUH_

#include <cstdint>

#include "model/cuda/launch.cuh"
#include "model/cuda/train/training_kernels.h"

namespace pace::cuda {

// REQUIRES: addresses aligned to eight elements
struct RowVector {
  float x[kRowVector];

  __device__ void Load(const float* from) {
    const float4* const quads = reinterpret_cast<const float4*>(from);
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const float4 four = quads[q];
      x[4 * q] = four.x;
      x[4 * q + 1] = four.y;
      x[4 * q + 2] = four.z;
      x[4 * q + 3] = four.w;
    }
  }
  __device__ void Load(const Half* from) {
    const uint4 words = *reinterpret_cast<const uint4*>(from);
    const auto* const pairs = reinterpret_cast<const __nv_bfloat162*>(&words);
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const float2 pair = __bfloat1622float2(pairs[p]);
      x[2 * p] = pair.x;
      x[2 * p + 1] = pair.y;
    }
  }
  __device__ void Store(float* to) const {
    auto* const quads = reinterpret_cast<float4*>(to);
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      quads[q] = make_float4(x[4 * q], x[4 * q + 1], x[4 * q + 2], x[4 * q + 3]);
    }
  }
  __device__ void Store(Half* to) const {
    *reinterpret_cast<uint4*>(to) = make_uint4(PackHalves(x[0], x[1]), PackHalves(x[2], x[3]),
                                               PackHalves(x[4], x[5]), PackHalves(x[6], x[7]));
  }
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_TRAIN_ROW_VECTOR_CUH_
