// ParseMath reads an answer in LaTeX or plain notation into a tree.
//
//   ParseMath("x = \\frac12, 3")   // the relation x = {1/2, 3}
//   ParseMath("(-\\infty, 2]")     // a kTuple with brackets: an interval
//   ParseMath("2\\frac{1}{3}")     // a mixed number: 2 + 1/3
//
// Conventions where notation is ambiguous: implicit products bind tighter than
// "/" and "*"; powers group to the left; "a:b" divides and "a:b:c" is a tuple of what
// the others are to a; a letter before parentheses around one atom or a list is a
// function; \log is to base ten; a subscript of a number (its base) does not change its
// value; degrees are dropped, but 30^\circ 15' is 30.25, and so is case from names. One
// thousands separator run such as "12,345" is a number, any other comma separates.
//
// Time and memory are bounded by the text's length; texts longer than
// kMaxMathBytes, or nested deeper than kMaxMathDepth rules of the grammar, are not
// read.
//
// Thread-safety: a function of its argument.
#ifndef PACE_REWARD_EQUIVALENCE_MATH_PARSER_H_
#define PACE_REWARD_EQUIVALENCE_MATH_PARSER_H_

#include <cstddef>
#include <string_view>

#include "reward/equivalence/math_node.h"

namespace pace::equiv {

inline constexpr size_t kMaxMathBytes = 4000;
inline constexpr int kMaxMathDepth = 160;

// Null where the text is not (wholly) mathematics.
MathNodePtr ParseMath(std::string_view text);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MATH_PARSER_H_
