// The DAPO verifier with integers compared by value.
//
// As VerifyDapo; where both normalised sides are integers, with a sign, leading
// zeros or commas between groups of three, their values are compared instead
// of their letters: "-1,234" is "-1234", "034" is "34", "+5" is "5".
//
// Thread-safety: a function of its arguments.
#ifndef PACE_REWARD_DAPO_INTEGER_H_
#define PACE_REWARD_DAPO_INTEGER_H_

#include <optional>
#include <string>
#include <string_view>

#include "reward/verification.h"

namespace pace {

Verification VerifyDapoInteger(std::string_view response, std::string_view answer);

// The integer that the whole text writes, in one form: "-" or nothing, then
// digits without leading zeros; "0" has no sign. None for any other text. A
// sign is "+", "-" or U+2212; digits may be of any script.
std::optional<std::string> CanonicalInteger(std::string_view text);

}  // namespace pace

#endif  // PACE_REWARD_DAPO_INTEGER_H_
