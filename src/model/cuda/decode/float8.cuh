// Eight-bit floats (e4m3, see model/quantization.h) as halves.
#ifndef PACE_MODEL_CUDA_DECODE_FLOAT8_CUH_
#define PACE_MODEL_CUDA_DECODE_FLOAT8_CUH_

#include <cstdint>

#include "model/cuda/launch.cuh"

namespace pace::cuda {

// Two values, in bytes 1 and 3. Exponents of halves are larger by 120: one exact product.
__device__ inline uint32_t HalvesOfPair(uint32_t pair) {
  const uint32_t bits = (pair & 0x80008000U) | (pair >> 4 & 0x07F007F0U);
  uint32_t halves;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(halves) : "r"(bits), "r"(0x7B807B80U));
  return halves;
}

// Eight values, in their order.
__device__ inline uint4 HalvesOf(uint2 values) {
  return make_uint4(HalvesOfPair(__byte_perm(values.x, 0, 0x1404)),
                    HalvesOfPair(__byte_perm(values.x, 0, 0x3424)),
                    HalvesOfPair(__byte_perm(values.y, 0, 0x1404)),
                    HalvesOfPair(__byte_perm(values.y, 0, 0x3424)));
}

// Sixteen bytes of weights as fragments of eight halves: as they are, or converted.
template <bool kFloat8>
struct Weights16 {
  static constexpr int kCount = kFloat8 ? 16 : 8;
  static constexpr int kEights = kCount / 8;
  static constexpr int kBytes = kFloat8 ? 1 : 2;  // of an element

  // Eight of them, from the first or the second half.
  static __device__ uint4 Eight(const uint4& bytes, int which) {
    if constexpr (kFloat8) {
      return HalvesOf(which == 0 ? make_uint2(bytes.x, bytes.y) : make_uint2(bytes.z, bytes.w));
    }
    return bytes;
  }
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_FLOAT8_CUH_
