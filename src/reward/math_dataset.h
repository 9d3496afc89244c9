// The verifiers of the datasets MATH (Hendrycks et al. 2021) and GSM8K.
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_MATH_DATASET_H_
#define PACE_REWARD_MATH_DATASET_H_

#include <optional>
#include <string>
#include <string_view>

#include "reward/verification.h"

namespace pace {

// The last \boxed{...} (or \fbox{...}, or "\boxed 5" up to the next "$") of the
// response against the answer, both under NormalizeMath. A response without
// any box is compared as a whole.
Verification VerifyMath(std::string_view response, std::string_view answer);

// Whether the dataset's own comparison calls two answers the same. Where a
// text is one that its normaliser fails on, the two must be the same letters.
bool IsMathEquivalent(std::string_view one, std::string_view other);

// One form for fractions and roots without braces, a/b, units after
// "\text{ ", percent, degrees, a missing leading zero, "x=" with at most two
// characters before "=". None for a text that it fails on: two "\text{ ", or a
// "\frac" or "\sqrt" at the very end.
std::optional<std::string> NormalizeMath(std::string_view text);

// GSM8K: whole-number and decimal answers.
//
// The number after the last "####" of the response; if there is none (or no
// number after it), the last number of the response. A number is an optional
// "-", then digits with commas and at most one point; "$" before it and commas
// inside are dropped, and so is a point at the end. The answer is read the same
// way, so that it may be a bare number or a whole GSM8K solution. Numbers are
// compared by value: "42.0" is "42".
Verification VerifyGsm8k(std::string_view response, std::string_view answer);

// The number in one form: "-1234.5"; no sign before 0, no zeros at either end.
std::optional<std::string> ExtractGsm8k(std::string_view text);

}  // namespace pace

#endif  // PACE_REWARD_MATH_DATASET_H_
