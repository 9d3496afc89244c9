// ReTool's reward: the strict box, and less of a penalty for using tools.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_REWARD_RETOOL_H_
#define PACE_REWARD_RETOOL_H_

#include <cstdint>
#include <string_view>

#include "reward/verification.h"

namespace pace {

// 1 where VerifyDapoStrict finds the answer, else min(-0.6, -1 + 0.05 (T - 2))
// with T = num_turns: at T = 10 the penalty stops shrinking. A response
// without a box extracts "".
Verification VerifyRetool(std::string_view response, std::string_view answer, int64_t num_turns);

}  // namespace pace

#endif  // PACE_REWARD_RETOOL_H_
