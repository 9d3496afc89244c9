// Floats to the bytes of a dtype, F32, F16, BF16 and ggml's Q8_0, and halves back to floats.
// Thread-safety: pure functions.
#ifndef PACE_FORMATS_FLOAT_ENCODING_H_
#define PACE_FORMATS_FLOAT_ENCODING_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/dtype.h"

namespace pace {

// REQUIRES: F32, F16 or BF16
std::vector<std::byte> EncodeFloats(std::span<const float> values, Dtype dtype);

// 32 values as one F16 scale, the largest magnitude / 127, and 32 integers, halves rounded away
// from zero: bit for bit what the `gguf` package writes. REQUIRES: a multiple of 32 values
std::vector<std::byte> EncodeQ8_0(std::span<const float> values);

// F16 and BF16 to float and back.
//
// To float is exact for every value: subnormals, both zeros, infinities; a NaN
// keeps its sign and payload. From float rounds to nearest, ties to even;
// what is too large becomes an infinity; a NaN keeps its sign and the payload
// that fits, and is quiet.
float F16ToFloat(uint16_t bits);
uint16_t FloatToF16(float value);

inline float BF16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
uint16_t FloatToBF16(float value);

}  // namespace pace

#endif  // PACE_FORMATS_FLOAT_ENCODING_H_
