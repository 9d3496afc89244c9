// Text as Python's str sees it: by code points, with its notions of space and
// digit (Unicode 14). Rules that were written in Python are kept by these.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_PYTHON_CHARACTERS_H_
#define PACE_REWARD_PYTHON_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pace {

// What a search returns that finds nothing.
inline constexpr size_t kNowhere = std::string_view::npos;

// Of ASCII alone.
inline bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
inline bool IsAsciiLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
inline bool IsAsciiSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// str.isdigit of one character: decimal digits and superscripts, circled and
// the like.
bool IsPythonDigitCode(uint32_t code);
// The value of a decimal digit of any script (`\d`); none for the rest.
std::optional<int> DecimalDigitValue(uint32_t code);

// text[-count:]
std::string_view LastCharacters(std::string_view text, size_t count);
// text.strip()
std::string_view StripSpace(std::string_view text);
// text.isdigit(): false for the empty text.
bool IsAllDigits(std::string_view text);
// text.find(word, from), npos where it is nowhere; fast on texts of nothing but the
// word's first letter. REQUIRES: word is not empty
size_t FindText(std::string_view text, std::string_view word, size_t from = 0);
// text.replace(before, after). REQUIRES: before is not empty
std::string ReplaceAll(std::string_view text, std::string_view before, std::string_view after);
// The bytes of the code point at `at`, at least one.
// REQUIRES: at < text.size()
size_t CharacterBytes(std::string_view text, size_t at);

}  // namespace pace

#endif  // PACE_REWARD_PYTHON_CHARACTERS_H_
