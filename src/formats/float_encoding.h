// Floats to the bytes of a dtype: F32, F16, BF16 and ggml's Q8_0.
//
// Halves round to nearest, ties to even (half.h). Q8_0 holds 32 values as one
// F16 scale, the largest magnitude / 127, and 32 integers, halves rounded away
// from zero: bit for bit what the `gguf` package writes.
// Thread-safety: pure functions.
#ifndef PACE_FORMATS_FLOAT_ENCODING_H_
#define PACE_FORMATS_FLOAT_ENCODING_H_

#include <cstddef>
#include <span>
#include <vector>

#include "formats/dtype.h"

namespace pace {

// REQUIRES: F32, F16 or BF16
std::vector<std::byte> EncodeFloats(std::span<const float> values, Dtype dtype);

// REQUIRES: a multiple of 32 values
std::vector<std::byte> EncodeQ8_0(std::span<const float> values);

}  // namespace pace

#endif  // PACE_FORMATS_FLOAT_ENCODING_H_
