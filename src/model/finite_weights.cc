#include "model/finite_weights.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/check.h"

namespace pace {
namespace {

// Elements whose exponent is all ones: NaN or infinity.
template <typename Bits>
int64_t CountNotFinite(std::span<const std::byte> bytes, Bits exponent) {
  std::array<Bits, 4096> chunk;
  int64_t count = 0;
  const size_t num_elements = bytes.size() / sizeof(Bits);
  for (size_t begin = 0; begin < num_elements; begin += chunk.size()) {
    const size_t size = std::min(chunk.size(), num_elements - begin);
    std::memcpy(chunk.data(), bytes.data() + begin * sizeof(Bits), size * sizeof(Bits));
    uint32_t found = 0;
    for (size_t i = 0; i < size; ++i) found += (chunk[i] & exponent) == exponent ? 1 : 0;
    count += found;
  }
  return count;
}

int64_t CountNotFinite(const TensorView& tensor) {
  switch (tensor.dtype) {
    case Dtype::kF32:
      return CountNotFinite<uint32_t>(tensor.bytes, 0x7F800000);
    case Dtype::kF16:
      return CountNotFinite<uint16_t>(tensor.bytes, 0x7C00);
    case Dtype::kBF16:
      return CountNotFinite<uint16_t>(tensor.bytes, 0x7F80);
    default:
      return 0;
  }
}

}  // namespace

Status CheckFinite(const WeightSet& weights) {
  PACE_CHECK(weights.residence() == Residence::kHost, "weights on a device");
  for (const auto& [name, tensor] : weights.views()) {
    const int64_t count = CountNotFinite(tensor);
    if (count == 0) continue;
    const auto width = static_cast<int64_t>(tensor.dtype == Dtype::kF32 ? 4 : 2);
    return InvalidArgument(name, ": ", count, " of ",
                           static_cast<int64_t>(tensor.bytes.size()) / width,
                           " elements are NaN or infinite (the file is damaged, or the training "
                           "that wrote it diverged)");
  }
  return Status::Ok();
}

}  // namespace pace
