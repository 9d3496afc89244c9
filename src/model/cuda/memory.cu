// Copies of cache blocks, and weights on their way to the device.
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "model/cuda/kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

__global__ void CopyBlocksKernel(uint4* cache, int64_t layer_size, int64_t block_size,
                                 const int32_t* pairs) {
  const int64_t layer = blockIdx.y * layer_size;
  const uint4* const from = cache + layer + pairs[2 * blockIdx.x] * block_size;
  uint4* const to = cache + layer + pairs[2 * blockIdx.x + 1] * block_size;
  for (int64_t i = threadIdx.x; i < block_size; i += blockDim.x) to[i] = from[i];
}

__device__ float ReadSource(const void* from, Source source, int64_t i) {
  if (source == Source::kF32) return static_cast<const float*>(from)[i];
  if (source == Source::kF16) return __half2float(static_cast<const __half*>(from)[i]);
  return __bfloat162float(static_cast<const Half*>(from)[i]);
}

template <typename T>
__global__ void ConvertKernel(const void* from, Source source, int64_t num_rows, int64_t width,
                              T* to, int64_t stride) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
       i < num_rows * width; i += step) {
    to[i / width * stride + i % width] = FromFloat<T>(ReadSource(from, source, i));
  }
}

constexpr unsigned kRoundThreads = 128;
constexpr uint32_t kExponentBits = 0x7F800000U;

// Of a row whose largest magnitude has these bits; NaN where it is not finite.
__device__ float Float8Scale(uint32_t largest) {
  if (largest >= kExponentBits) return __uint_as_float(0x7FC00000U);
  if (largest == 0) return 1.0F;
  // 448 is 1.75 * 2^8.
  const int exponent =
      static_cast<int>(largest >> 23) - 127 - ((largest & 0x7FFFFFU) <= 0x600000U ? 8 : 7);
  return __uint_as_float(static_cast<uint32_t>(max(exponent, -100) + 127) << 23);
}

// A block for a row.
template <typename T>
__global__ void RoundKernel(const void* from, Source source, int64_t width, Float8Rows to) {
  __shared__ uint32_t largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  const int64_t row = blockIdx.x;
  uint32_t mine = 0;
  for (int64_t i = threadIdx.x; i < width; i += kRoundThreads) {
    mine = max(mine, __float_as_uint(fabsf(ReadSource(from, source, row * width + i))));
  }
  atomicMax(&largest, __reduce_max_sync(kAllLanes, mine));
  __syncthreads();
  const float scale = Float8Scale(largest);
  if (to.scales != nullptr && threadIdx.x == 0) to.scales[row] = scale;
  for (int64_t i = threadIdx.x; i < width; i += kRoundThreads) {
    const float x = ReadSource(from, source, row * width + i) / scale;
    const __nv_fp8_storage_t value = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
    if (to.values != nullptr) to.values[row * width + i] = value;
    if (to.rounded == nullptr) continue;
    const __half nearest(__nv_cvt_fp8_to_halfraw(value, __NV_E4M3));
    static_cast<T*>(to.rounded)[row * to.stride + i] = FromFloat<T>(scale * __half2float(nearest));
  }
}

// A mixing function of 64 bits.
__device__ uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDULL;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ULL;
  return x ^ x >> 33;
}

template <typename T>
__global__ void RandomKernel(T* to, int64_t num_rows, int64_t width, int64_t stride, uint64_t seed,
                             float mean, float deviation) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
       i < num_rows * width; i += step) {
    const uint64_t bits = Mix(Mix(seed) + static_cast<uint64_t>(i));
    const float u = (static_cast<float>(bits >> 40) + 0.5F) * 0x1.0p-24F;
    const float angle = static_cast<float>(bits & 0xFFFFFFU) * 0x1.0p-24F;
    const float normal = sqrtf(-2.0F * logf(u)) * cospif(2.0F * angle);
    to[i / width * stride + i % width] = FromFloat<T>(mean + deviation * normal);
  }
}

unsigned GridFor(int64_t n) {
  return static_cast<unsigned>(n / 256 < 4096 ? n / 256 + 1 : 4096);
}

}  // namespace

void CopyCacheBlocks(void* cache, int64_t layer_bytes, int64_t block_bytes, int64_t num_layers,
                     const int32_t* pairs, int64_t num_pairs, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(num_pairs), static_cast<unsigned>(num_layers));
  CopyBlocksKernel<<<grid, 256, 0, stream>>>(static_cast<uint4*>(cache), layer_bytes / 16,
                                             block_bytes / 16, pairs);
}

void ConvertRows(const void* from, Source source, int64_t num_rows, int64_t width, void* to,
                 int64_t stride, Element element, cudaStream_t stream) {
  const unsigned grid = GridFor(num_rows * width);
  if (element == Element::kHalf) {
    ConvertKernel<<<grid, 256, 0, stream>>>(from, source, num_rows, width, static_cast<Half*>(to),
                                            stride);
  } else {
    ConvertKernel<<<grid, 256, 0, stream>>>(from, source, num_rows, width, static_cast<float*>(to),
                                            stride);
  }
}

void RoundRows(const void* from, Source source, int64_t num_rows, int64_t width,
               const Float8Rows& to, cudaStream_t stream) {
  const auto kernel = to.element == Element::kHalf ? RoundKernel<Half> : RoundKernel<float>;
  kernel<<<static_cast<unsigned>(num_rows), kRoundThreads, 0, stream>>>(from, source, width, to);
}

void FillRandom(void* to, Element element, int64_t num_rows, int64_t width, int64_t stride,
                uint64_t seed, float mean, float deviation, cudaStream_t stream) {
  const unsigned grid = GridFor(num_rows * width);
  if (element == Element::kHalf) {
    RandomKernel<<<grid, 256, 0, stream>>>(static_cast<Half*>(to), num_rows, width, stride, seed,
                                           mean, deviation);
  } else {
    RandomKernel<<<grid, 256, 0, stream>>>(static_cast<float*>(to), num_rows, width, stride, seed,
                                           mean, deviation);
  }
}

}  // namespace pace::cuda
