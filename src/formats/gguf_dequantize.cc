// Blocks of ggml to floats. Compiled without fused multiply-add, so that values
// do not depend on the machine.
#include <cstring>

#include "core/printable.h"
#include "formats/float_encoding.h"
#include "formats/gguf.h"

namespace pace {
namespace {

constexpr size_t kBlock = 32;  // elements in a block of Q8_0, Q4_0, Q4_1

uint16_t LoadU16(const std::byte* from) {
  uint16_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

float LowNibble(std::byte byte) {
  return static_cast<float>(std::to_integer<int>(byte & std::byte{15}));
}
float HighNibble(std::byte byte) {
  return static_cast<float>(std::to_integer<int>(byte >> 4));
}

void DecodeF32(const std::byte* from, float* to) {
  std::memcpy(to, from, sizeof(float));
}
void DecodeF16(const std::byte* from, float* to) {
  *to = F16ToFloat(LoadU16(from));
}
void DecodeBF16(const std::byte* from, float* to) {
  *to = BF16ToFloat(LoadU16(from));
}

// scale, then 32 signed bytes.
void DecodeQ8_0(const std::byte* from, float* to) {
  const float scale = F16ToFloat(LoadU16(from));
  for (size_t i = 0; i < kBlock; ++i) {
    to[i] = scale * static_cast<float>(static_cast<int8_t>(from[2 + i]));
  }
}

// scale, then 16 bytes: the low halves are the first 16 values, the high halves
// the other 16; 8 stands for zero.
void DecodeQ4_0(const std::byte* from, float* to) {
  const float scale = F16ToFloat(LoadU16(from));
  for (size_t i = 0; i < kBlock / 2; ++i) {
    to[i] = scale * (LowNibble(from[2 + i]) - 8.0f);
    to[i + kBlock / 2] = scale * (HighNibble(from[2 + i]) - 8.0f);
  }
}

// scale and least value, then nibbles as above.
void DecodeQ4_1(const std::byte* from, float* to) {
  const float scale = F16ToFloat(LoadU16(from));
  const float least = F16ToFloat(LoadU16(from + 2));
  for (size_t i = 0; i < kBlock / 2; ++i) {
    to[i] = scale * LowNibble(from[4 + i]) + least;
    to[i + kBlock / 2] = scale * HighNibble(from[4 + i]) + least;
  }
}

using Decoder = void (*)(const std::byte*, float*);

Decoder FindDecoder(uint32_t id) {
  switch (id) {
    case kGgmlF32:
      return DecodeF32;
    case kGgmlF16:
      return DecodeF16;
    case kGgmlBF16:
      return DecodeBF16;
    case kGgmlQ8_0:
      return DecodeQ8_0;
    case kGgmlQ4_0:
      return DecodeQ4_0;
    case kGgmlQ4_1:
      return DecodeQ4_1;
    default:
      return nullptr;
  }
}

}  // namespace

bool CanDequantize(const GgmlType& type) {
  return FindDecoder(type.id) != nullptr;
}

Result<std::vector<float>> Dequantize(const GgufTensor& tensor) {
  const Decoder decode = FindDecoder(tensor.type.id);
  if (decode == nullptr) {
    return InvalidArgument("tensor ", Printable(tensor.name), ": type ", tensor.type.name,
                           ": must be F32, F16, BF16, Q8_0, Q4_0 or Q4_1 to become floats");
  }
  std::vector<float> values(static_cast<size_t>(tensor.num_elements));
  const std::byte* from = tensor.bytes.data();
  const auto elements = static_cast<size_t>(tensor.type.elements);
  for (size_t at = 0; at < values.size(); at += elements, from += tensor.type.bytes) {
    decode(from, values.data() + at);
  }
  return values;
}

}  // namespace pace
