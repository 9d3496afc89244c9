// What the kernels of StreamProduct share.
#ifndef PACE_MODEL_CUDA_STREAM_PARTS_CUH_
#define PACE_MODEL_CUDA_STREAM_PARTS_CUH_

#include "model/cuda/launch.cuh"
#include "model/cuda/product_kernels.h"

namespace pace::cuda {

// Rows of x that vector_product.cu takes.
inline constexpr int64_t kMaxVectorRows = 2;
void VectorProduct(const StreamArguments& arguments, cudaStream_t stream);

// 16 bytes that are read once, or zeros; no branch.
__device__ inline uint4 LoadOnce(const Half* from, bool is_there) {
  uint4 x;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0; mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; "
      "mov.u32 %3, 0; @p ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4]; }"
      : "=&r"(x.x), "=&r"(x.y), "=&r"(x.z), "=&r"(x.w)
      : "l"(from), "r"(static_cast<unsigned>(is_there)));
  return x;
}

// Norms rows of x into `to`, rows of `stride` halves in shared memory. `products`
// holds a row's elements times their weights between the two passes.
__device__ inline void NormInto(const StreamArguments& a, Half* to, int64_t stride,
                                float4* products, float* scratch) {
  const auto* const weight = reinterpret_cast<const float4*>(a.norm_weight);
  const auto num_vectors = static_cast<int>(a.norm_width / 4);
  for (int64_t row = 0; row < a.num_rows; ++row) {
    const auto* const x =
        reinterpret_cast<const float4*>(static_cast<const float*>(a.x) + row * a.x_stride);
    float squares = 0;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < num_vectors;
         i += static_cast<int>(blockDim.x)) {
      const float4 v = x[i];
      const float4 w = weight[i];
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
      products[i] = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
    }
    const float mean = BlockSum(squares, scratch) / static_cast<float>(a.norm_width);
    const float factor = rsqrtf(mean + a.epsilon);
    for (int i = static_cast<int>(threadIdx.x); 4 * i < a.num_inputs;
         i += static_cast<int>(blockDim.x)) {
      const float4 v = i < num_vectors ? products[i] : make_float4(0, 0, 0, 0);
      *reinterpret_cast<uint2*>(to + row * stride + 4 * i) = make_uint2(
          PackHalves(v.x * factor, v.y * factor), PackHalves(v.z * factor, v.w * factor));
    }
  }
  __syncthreads();
}

// Halves from a normed row to the next, in shared memory.
__host__ __device__ constexpr int64_t NormStride(int64_t num_inputs) {
  return num_inputs + 32;
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

#endif  // PACE_MODEL_CUDA_STREAM_PARTS_CUH_
