// What characters are: space, parts of words, their cases; and the normal forms
// of text.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TEXT_CHARACTERS_H_
#define PACE_TEXT_CHARACTERS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace pace {

// Letters, marks, decimal digits, joiners and connecting punctuation.
bool IsWordCharacter(uint32_t code);
bool IsLetter(uint32_t code);
bool IsUpper(uint32_t code);
bool IsLower(uint32_t code);
bool IsDecimalDigit(uint32_t code);
// Whether Python's repr shows the character as it is.
bool IsPrintable(uint32_t code);
// The simple mappings, one letter to one; the full ones of texts are below.
uint32_t UpperOf(uint32_t code);
uint32_t LowerOf(uint32_t code);
uint32_t TitleOf(uint32_t code);
// Whether a letter has a case, and whether case looks past a character (marks, formats,
// modifiers, the signs inside words).
bool IsCased(uint32_t code);
bool IsCaseIgnorable(uint32_t code);

// The byte at which the last code point begins.
// REQUIRES: text is well-formed and not empty
size_t BeginOfLastCharacter(std::string_view text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// REQUIRES: text is well-formed
std::string Normalize(std::string_view text, NormalForm form);
// True only if the text is certainly in NFC already; false says nothing.
bool IsPlainlyNfc(std::string_view text);

// Letter case as Python's str has it: the full mappings of Unicode. One letter may become several
// ("ß" is "SS" in capitals), and a capital sigma at the end of a word becomes the final one.
//
// REQUIRES of all: text is well-formed UTF-8
std::string PythonUpper(std::string_view text);
std::string PythonLower(std::string_view text);
std::string PythonCapitalize(std::string_view text);
// A capital after every character without case; modifier letters count as such.
std::string PythonTitle(std::string_view text);

// Jinja's filter `title`: a capital after space, "-" and opening brackets alone.
std::string JinjaTitle(std::string_view text);

}  // namespace pace

#endif  // PACE_TEXT_CHARACTERS_H_
