// Dtype: how safetensors names and sizes the elements of a tensor.
//
// The order is that of the Python package, which sorts tensors by it when it
// writes; so do we. Some dtypes are smaller than a byte: sizes are in bits.
// Thread-safety: values and pure functions.
#ifndef PACE_FORMATS_DTYPE_H_
#define PACE_FORMATS_DTYPE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/status.h"

namespace pace {

enum class Dtype {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

inline constexpr int kNumDtypes = 22;

// "BF16" and so on, as the header of a file spells it; case matters.
std::string_view DtypeName(Dtype dtype);
std::optional<Dtype> ParseDtype(std::string_view name);

int64_t BitsPerElement(Dtype dtype);

// The bytes of a tensor in C order. An error when a dimension is negative, the
// product does not fit, or the elements do not fill whole bytes. Dimensions
// multiply from the left, so [0, huge, huge] is empty and [huge, huge, 0] does
// not fit: the package rules the same.
Result<int64_t> TensorBytes(Dtype dtype, std::span<const int64_t> shape);

// "[2, 3]", for messages.
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace pace

#endif  // PACE_FORMATS_DTYPE_H_
