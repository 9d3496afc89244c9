// UTF-8, code point by code point.
//
// Ill-formed bytes are split as the Unicode standard recommends: each maximal
// part that could have begun a character counts as one error, so decoding here
// replaces the same bytes by U+FFFD as other careful decoders do.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_CORE_UTF8_H_
#define PACE_CORE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pace {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// A text without the byte order mark that some editors put in front of it.
inline std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

struct CodePoint {
  uint32_t code = 0;     // U+FFFD where `well_formed` is false
  size_t num_bytes = 0;  // at least 1
  bool well_formed = true;
};

// The code point, or the maximal ill-formed part, at `at`.
// REQUIRES: at < text.size()
CodePoint ReadCodePoint(std::string_view text, size_t at);

// `code` may be half a surrogate pair; it is then written in three bytes, which
// no decoder of UTF-8 accepts (JSON texts can hold such halves).
void AppendCodePoint(std::string& out, uint32_t code);

bool IsWellFormed(std::string_view text);

// Each maximal ill-formed part becomes one U+FFFD.
std::string ReplaceIllFormed(std::string_view text);

// Whether ReplaceIllFormed(text) ends in U+FFFD, from the last bytes alone.
bool EndsInReplacement(std::string_view text);

// White_Space of Unicode.
bool IsWhiteSpace(uint32_t code);
// str.isspace of Python, which is also what its `\s` matches: the above and four separators.
bool IsPythonSpace(uint32_t code);

// Code points in the text, an ill-formed part counting as one.
size_t CountCodePoints(std::string_view text);

// The byte where code point number `index` begins; the end where there are
// fewer.
size_t OffsetOfCodePoint(std::string_view text, size_t index);

}  // namespace pace

#endif  // PACE_CORE_UTF8_H_
