#include "text/tokenizer/byte_alphabet.h"

#include <array>

#include "core/utf8.h"

namespace pace {
namespace {

// Bytes that print in Latin-1 stand for themselves; the others take U+0100 and
// up, in order.
constexpr bool StandsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr uint32_t kNumCharacters = 0x100 + 68;

struct Alphabet {
  std::array<uint32_t, 256> character_of = {};
  std::array<int16_t, kNumCharacters> byte_of = {};  // negative: not in the alphabet

  constexpr Alphabet() {
    for (int16_t& byte : byte_of) byte = -1;
    uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      character_of[byte] = StandsForItself(byte) ? byte : next++;
      byte_of[character_of[byte]] = static_cast<int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

uint32_t CharacterOfByte(unsigned char byte) {
  return kAlphabet.character_of[byte];
}

std::optional<std::string> BytesOfToken(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (size_t at = 0; at < token.size();) {
    const CodePoint point = ReadCodePoint(token, at);
    if (point.code >= kNumCharacters || kAlphabet.byte_of[point.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte_of[point.code]);
    at += point.num_bytes;
  }
  return bytes;
}

}  // namespace pace
