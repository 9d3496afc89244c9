// The byte alphabet of byte-level tokenizers: each byte has one printable
// character, so that any bytes can be written as text in a vocabulary.
#ifndef PACE_TEXT_TOKENIZER_BYTE_ALPHABET_H_
#define PACE_TEXT_TOKENIZER_BYTE_ALPHABET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pace {

// The character of a byte.
uint32_t CharacterOfByte(unsigned char byte);

// The bytes that a token spells; none if one of its characters is outside the
// alphabet.
std::optional<std::string> BytesOfToken(std::string_view token);

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_BYTE_ALPHABET_H_
