// Mathematical equivalence of a response's answer with the right one.
//
// The answer is found in the response (and in `answer`, which may be a bare
// formula, marked LaTeX or a whole solution) as answer_search.h says and compared
// as math_comparer.h says: numbers, expressions at random points, equations,
// inequalities, points, lists, sets, intervals, matrices. Answers that cannot be
// read as mathematics are compared as text.
//
//   const Verification found = VerifyEquivalence("so x = \\boxed{\\frac{1}{2}}", "0.5");
//   // found.correct; *found.extracted is what was compared
//
// Thread-safety: a function of its arguments.
#ifndef PACE_REWARD_EQUIVALENCE_H_
#define PACE_REWARD_EQUIVALENCE_H_

#include <cstddef>
#include <string_view>

#include "reward/verification.h"

namespace pace {

// How much of the end of a text is looked at.
inline constexpr size_t kMaxVerifiedBytes = 32 * 1024;

// 1 or 0. Takes a few milliseconds at most, whatever the texts hold.
Verification VerifyEquivalence(std::string_view response, std::string_view answer);

}  // namespace pace

#endif  // PACE_REWARD_EQUIVALENCE_H_
