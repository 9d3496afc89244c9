// The verifier that came with the MATH dataset (Hendrycks et al. 2021).
//
// The last \boxed{...} (or \fbox{...}, or "\boxed 5" up to the next "$") of the
// response against the answer, both under NormalizeMath. A response without
// any box is compared as a whole.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_MATH_DATASET_H_
#define PACE_REWARD_MATH_DATASET_H_

#include <optional>
#include <string>
#include <string_view>

#include "reward/verification.h"

namespace pace {

Verification VerifyMath(std::string_view response, std::string_view answer);

// Whether the dataset's own comparison calls two answers the same. Where a
// text is one that its normaliser fails on, the two must be the same letters.
bool IsMathEquivalent(std::string_view one, std::string_view other);

// One form for fractions and roots without braces, a/b, units after
// "\text{ ", percent, degrees, a missing leading zero, "x=" with at most two
// characters before "=". None for a text that it fails on: two "\text{ ", or a
// "\frac" or "\sqrt" at the very end.
std::optional<std::string> NormalizeMath(std::string_view text);

}  // namespace pace

#endif  // PACE_REWARD_MATH_DATASET_H_
