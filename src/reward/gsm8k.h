// GSM8K: whole-number and decimal answers.
//
// The number after the last "####" of the response; if there is none (or no
// number after it), the last number of the response. A number is an optional
// "-", then digits with commas and at most one point; "$" before it and commas
// inside are dropped, and so is a point at the end. The answer is read the same
// way, so that it may be a bare number or a whole GSM8K solution. Numbers are
// compared by value: "42.0" is "42".
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_GSM8K_H_
#define PACE_REWARD_GSM8K_H_

#include <optional>
#include <string>
#include <string_view>

#include "reward/verification.h"

namespace pace {

Verification VerifyGsm8k(std::string_view response, std::string_view answer);

// The number in one form: "-1234.5"; no sign before 0, no zeros at either end.
std::optional<std::string> ExtractGsm8k(std::string_view text);

}  // namespace pace

#endif  // PACE_REWARD_GSM8K_H_
