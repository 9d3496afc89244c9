#include "formats/float_encoding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/check.h"
#include "formats/half.h"

namespace pace {

std::vector<std::byte> EncodeFloats(std::span<const float> values, Dtype dtype) {
  std::vector<std::byte> bytes;
  if (dtype == Dtype::kF32) {
    const auto view = std::as_bytes(values);
    bytes.assign(view.begin(), view.end());
    return bytes;
  }
  PACE_CHECK(dtype == Dtype::kF16 || dtype == Dtype::kBF16, DtypeName(dtype));
  bytes.resize(values.size() * sizeof(uint16_t));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = dtype == Dtype::kF16 ? FloatToF16(values[i]) : FloatToBF16(values[i]);
    std::memcpy(bytes.data() + i * sizeof(half), &half, sizeof(half));
  }
  return bytes;
}

std::vector<std::byte> EncodeQ8_0(std::span<const float> values) {
  constexpr size_t kBlock = 32;
  constexpr size_t kBlockBytes = 2 + kBlock;
  PACE_CHECK(values.size() % kBlock == 0, "values = ", values.size());
  std::vector<std::byte> bytes(values.size() / kBlock * kBlockBytes);
  std::byte* out = bytes.data();
  for (size_t begin = 0; begin < values.size(); begin += kBlock, out += kBlockBytes) {
    const std::span<const float> block = values.subspan(begin, kBlock);
    float largest = 0;
    for (const float value : block) largest = std::max(largest, std::fabs(value));
    const float scale = largest / 127.0f;
    const float inverse = scale == 0 ? 0.0f : 1.0f / scale;
    const uint16_t half = FloatToF16(scale);
    std::memcpy(out, &half, sizeof(half));
    for (size_t i = 0; i < kBlock; ++i) {
      // Not finite: no integer stands for it.
      const float scaled = block[i] * inverse;
      const float bounded = std::isfinite(scaled) ? std::clamp(scaled, -127.0f, 127.0f) : 0.0f;
      out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(bounded)));
    }
  }
  return bytes;
}

}  // namespace pace
