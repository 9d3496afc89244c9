// TensorView: a tensor in a file or in memory, without owning its bytes.
#ifndef PACE_FORMATS_TENSOR_VIEW_H_
#define PACE_FORMATS_TENSOR_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/dtype.h"

namespace pace {

// Little-endian elements in C order. The bytes need not be aligned to the
// element: old files put an F32 at any offset. Copy them, do not cast.
struct TensorView {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;  // empty = a scalar
  std::span<const std::byte> bytes;
};

// By name, in the order of bytes.
using TensorViews = std::map<std::string, TensorView, std::less<>>;

// A tensor of floats that owns its values, as importers produce it.
struct FloatTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

}  // namespace pace

#endif  // PACE_FORMATS_TENSOR_VIEW_H_
