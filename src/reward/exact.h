// The whole response against the answer.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_REWARD_EXACT_H_
#define PACE_REWARD_EXACT_H_

#include <string_view>

#include "reward/verification.h"

namespace pace {

// Right when both are the same text, space at either end left out.
Verification VerifyExact(std::string_view response, std::string_view answer);

}  // namespace pace

#endif  // PACE_REWARD_EXACT_H_
