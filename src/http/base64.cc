#include "http/base64.h"

#include <cstdint>

namespace pace {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - at);
    uint32_t word = 0;
    for (size_t index = 0; index < 3; ++index) {
      const auto byte = index < have ? static_cast<unsigned char>(bytes[at + index]) : 0;
      word = word << 8 | static_cast<uint32_t>(byte);
    }
    for (size_t index = 0; index < 4; ++index) {
      text += index <= have ? kAlphabet[word >> (18 - 6 * index) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t word = 0;
  int num_bits = 0;
  for (const char c : text) {
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(word >> num_bits & 255);
  }
  // What is left over must be zero, so that every text has one meaning.
  if ((word & ((1U << num_bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace pace
