#include "formats/float_encoding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/check.h"

namespace pace {
namespace {

constexpr uint32_t kFloatInfinity = 0x7F800000u;

// value / 2^shift, to nearest, ties to even. REQUIRES: 1 <= shift <= 31.
constexpr uint32_t ShiftRounded(uint32_t value, uint32_t shift) {
  const uint32_t half = 1u << (shift - 1);
  const uint32_t rest = value & ((1u << shift) - 1);
  const uint32_t down = value >> shift;
  const bool up = rest > half || (rest == half && (down & 1u) != 0);
  return down + (up ? 1u : 0u);
}

}  // namespace

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

float F16ToFloat(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | kFloatInfinity | (fraction << 13));
  if (exponent == 0) {
    // A multiple of 2^-24, which float holds exactly.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t FloatToF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t out = 0;
  if (magnitude > kFloatInfinity) {
    out = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  } else if (magnitude >= 0x477FF000u) {  // 65,520, which lies half way to 65,536
    out = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the least normal
    // Rounding may carry into the exponent, which is then right as well.
    out = ShiftRounded(magnitude - (112u << 23), 13);
  } else if (magnitude >= 0x33000000u) {  // 2^-25, half of the least subnormal
    const uint32_t exponent = magnitude >> 23;
    out = ShiftRounded((magnitude & 0x7FFFFFu) | 0x800000u, 126 - exponent);
  }
  return static_cast<uint16_t>(sign | out);
}

uint16_t FloatToBF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > kFloatInfinity) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>(ShiftRounded(bits, 16));
}

}  // namespace pace
