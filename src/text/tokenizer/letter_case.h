// Letter case as Python's str has it: upper, lower, capitalize, title.
//
// The full mappings of Unicode: one letter may become several ("ß" is "SS" in capitals), and a
// capital sigma at the end of a word becomes the final one.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TEXT_TOKENIZER_LETTER_CASE_H_
#define PACE_TEXT_TOKENIZER_LETTER_CASE_H_

#include <string>
#include <string_view>

namespace pace {

// REQUIRES of all: text is well-formed UTF-8
std::string PythonUpper(std::string_view text);
std::string PythonLower(std::string_view text);
std::string PythonCapitalize(std::string_view text);
// A capital after every character without case; modifier letters count as such.
std::string PythonTitle(std::string_view text);

// Jinja's filter `title`: a capital after space, "-" and opening brackets alone.
std::string JinjaTitle(std::string_view text);

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_LETTER_CASE_H_
