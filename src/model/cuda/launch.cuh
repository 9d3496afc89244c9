// Launching kernels in sequence, and small pieces that kernels share.
#ifndef PACE_MODEL_CUDA_LAUNCH_CUH_
#define PACE_MODEL_CUDA_LAUNCH_CUH_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

namespace pace::cuda {

using Half = __nv_bfloat16;

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;
// Of a processor's memory; the rest is cache.
inline constexpr unsigned kSharedPercent = 50;

// The kernel may start before its predecessor ends; it must call
// WaitForPredecessor before it touches what other kernels write or read.
template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  // The same for all: a processor drains before its memory is split anew.
  attributes[1].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[1].val.sharedMemCarveout = kSharedPercent;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  // Errors stay with the runtime until the pass asks for them.
  (void)cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

#ifdef __CUDACC__

__device__ inline void WaitForPredecessor() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ inline void ReleaseSuccessor() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ inline float ToFloat(float x) {
  return x;
}
__device__ inline float ToFloat(Half x) {
  return __bfloat162float(x);
}
template <typename T>
__device__ T FromFloat(float x);
template <>
__device__ inline float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ inline Half FromFloat<Half>(float x) {
  return __float2bfloat16_rn(x);
}

__device__ inline float WarpSum(float x) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
__device__ inline float WarpMax(float x) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
  }
  return x;
}

// Of all threads of the block, for each of them. `scratch`: 32 floats; it may be
// used again after the call. REQUIRES: whole warps
__device__ inline float BlockSum(float x, float* scratch) {
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  x = WarpSum(x);
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  float sum = lane < blockDim.x / kWarp ? scratch[lane] : 0.0F;
  sum = WarpSum(sum);
  __syncthreads();
  return sum;
}

// The same for two at once.
__device__ inline float2 BlockSum(float2 x, float2* scratch) {
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  x = make_float2(WarpSum(x.x), WarpSum(x.y));
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  const float2 own = lane < blockDim.x / kWarp ? scratch[lane] : make_float2(0, 0);
  const float2 sum = make_float2(WarpSum(own.x), WarpSum(own.y));
  __syncthreads();
  return sum;
}

__device__ inline float Silu(float x) {
  return x / (1.0F + expf(-x));
}

// d += a * b: sixteen by sixteen times sixteen by eight.
__device__ inline void Multiply(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// An eight by eight matrix of halves, a row in four lanes, transposed.
__device__ inline uint32_t Transpose(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

__device__ inline uint32_t PackHalves(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

#endif  // __CUDACC__

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_LAUNCH_CUH_
