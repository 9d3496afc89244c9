// The message of a reply that asks for the request again (reward_worker.py: "later").
#ifndef PACE_JUDGE_ASK_AGAIN_H_
#define PACE_JUDGE_ASK_AGAIN_H_

#include <string_view>

namespace pace {

inline constexpr std::string_view kAskAgain = "later";

}  // namespace pace

#endif  // PACE_JUDGE_ASK_AGAIN_H_
