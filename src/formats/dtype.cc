#include "formats/dtype.h"

#include <array>
#include <string>

namespace pace {
namespace {

struct Entry {
  Dtype dtype;
  std::string_view name;
  int64_t bits;
};

constexpr std::array<Entry, kNumDtypes> kDtypes = {{
    {Dtype::kBool, "BOOL", 8},
    {Dtype::kF4, "F4", 4},
    {Dtype::kF6E2M3, "F6_E2M3", 6},
    {Dtype::kF6E3M2, "F6_E3M2", 6},
    {Dtype::kU8, "U8", 8},
    {Dtype::kI8, "I8", 8},
    {Dtype::kF8E5M2, "F8_E5M2", 8},
    {Dtype::kF8E4M3, "F8_E4M3", 8},
    {Dtype::kF8E8M0, "F8_E8M0", 8},
    {Dtype::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {Dtype::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {Dtype::kI16, "I16", 16},
    {Dtype::kU16, "U16", 16},
    {Dtype::kF16, "F16", 16},
    {Dtype::kBF16, "BF16", 16},
    {Dtype::kI32, "I32", 32},
    {Dtype::kU32, "U32", 32},
    {Dtype::kF32, "F32", 32},
    {Dtype::kC64, "C64", 64},
    {Dtype::kF64, "F64", 64},
    {Dtype::kI64, "I64", 64},
    {Dtype::kU64, "U64", 64},
}};

constexpr bool IndexedByDtype() {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (static_cast<size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(IndexedByDtype());

}  // namespace

std::string_view DtypeName(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].name;
}

std::optional<Dtype> ParseDtype(std::string_view name) {
  for (const Entry& entry : kDtypes) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

int64_t BitsPerElement(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].bits;
}

Result<int64_t> TensorBytes(Dtype dtype, std::span<const int64_t> shape) {
  int64_t bits = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0) {
      return InvalidArgument("shape = ", ShapeText(shape), ": dimensions must be >= 0");
    }
    if (__builtin_mul_overflow(bits, dimension, &bits)) {
      return InvalidArgument("shape = ", ShapeText(shape), ": the size must fit in 63 bits");
    }
  }
  if (__builtin_mul_overflow(bits, BitsPerElement(dtype), &bits)) {
    return InvalidArgument("shape = ", ShapeText(shape), ": the size must fit in 63 bits");
  }
  if (bits % 8 != 0) {
    return InvalidArgument("shape = ", ShapeText(shape), ": elements of ", BitsPerElement(dtype),
                           " bits (", DtypeName(dtype), ") must fill whole bytes");
  }
  return bits / 8;
}

std::string ShapeText(std::span<const int64_t> shape) {
  constexpr size_t kMaxShown = 16;
  std::string text = "[";
  for (size_t i = 0; i < shape.size() && i < kMaxShown; ++i) {
    if (i > 0) text += ", ";
    AppendTo(text, shape[i]);
  }
  if (shape.size() > kMaxShown) text += ", ...";
  return text + "]";
}

}  // namespace pace
