// What the kernels of StreamProduct share.
#ifndef PACE_MODEL_CUDA_DECODE_STREAM_PARTS_CUH_
#define PACE_MODEL_CUDA_DECODE_STREAM_PARTS_CUH_

#include "model/cuda/decode/product_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {

// Rows of x that vector_product.cu takes; it norms them where that is asked for.
inline constexpr int64_t kMaxVectorRows = kMaxStreamNormRows;
void VectorProduct(const StreamArguments& arguments, cudaStream_t stream);

// 16 bytes that are read once, or zeros; no branch.
__device__ inline uint4 LoadOnce(const void* from, bool is_there) {
  uint4 x;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0; mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; "
      "mov.u32 %3, 0; @p ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4]; }"
      : "=&r"(x.x), "=&r"(x.y), "=&r"(x.z), "=&r"(x.w)
      : "l"(from), "r"(static_cast<unsigned>(is_there)));
  return x;
}

// Of the first expert's scales, those of another.
__device__ inline const float* ScalesOf(const float* first, int64_t expert, int64_t stride) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(first) + expert * stride);
}

__device__ inline void StoreOutput(const StreamArguments& a, int64_t row, int64_t output,
                                   float first, float second) {
  const int64_t at = row * a.out_stride + output;
  if (a.output == StreamOutput::kGate) {
    if (a.bias != nullptr) {
      first += a.bias[output];
      second += a.bias[a.num_outputs + output];
    }
    static_cast<Half*>(a.out)[at] = FromFloat<Half>(Silu(first) * second);
    return;
  }
  float* const out = static_cast<float*>(a.out) + at;
  if (a.output == StreamOutput::kStore) {
    *out = first;
  } else {
    *out += first + (a.bias == nullptr ? 0.0F : a.bias[output]);
  }
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_STREAM_PARTS_CUH_
