// Numbers and arithmetic outside mathematical environments: "is 1,234.5 m",
// "= (1/2) * 3.".
//
// A number begins the text or follows space or "=", with "**" or a
// currency sign before it or without; what follows it does not matter. "1,234"
// and "1 234" are whole, "12,5" is a decimal. Arithmetic consists of digits and
// + - * / ^ ( ), holds an operator, and must be followed by punctuation, space or
// the end.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_EQUIVALENCE_PLAIN_NUMBERS_H_
#define PACE_REWARD_EQUIVALENCE_PLAIN_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reward/equivalence/math_node.h"

namespace pace::equiv {

struct PlainMatch {
  std::string_view text;
  bool is_arithmetic = false;
  bool has_percent = false;
  size_t end = 0;
  int64_t factor = 1;  // of "5 million"
};

// The number whose prefix (the text's beginning, space or "=") is at `at`.
std::optional<PlainMatch> MatchPlainNumber(std::string_view text, size_t at);
std::optional<PlainMatch> MatchPlainArithmetic(std::string_view text, size_t at);
// Arithmetic where it matches, else a number.
std::optional<PlainMatch> MatchPlain(std::string_view text, size_t at);

// Null for arithmetic that makes no sense and for numbers of too many digits.
MathNodePtr ReadPlain(const PlainMatch& match);

// Whether the whole text is one number, a currency sign or a percent sign
// included.
bool IsPlainNumber(std::string_view text);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_PLAIN_NUMBERS_H_
