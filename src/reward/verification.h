// Verification: what a verifier says of one response.
#ifndef PACE_REWARD_VERIFICATION_H_
#define PACE_REWARD_VERIFICATION_H_

#include <optional>
#include <string>
#include <utility>

namespace pace {

struct Verification {
  bool correct = false;
  // The reward: 1 or -1 in the dapo modes, 1 or 0 in `math`, `equiv`, `gsm8k`
  // and `exact`, 1 or something in [-1.1, -0.6] in `retool`.
  double score = 0;
  // The answer as it was compared; none where the response holds none.
  std::optional<std::string> extracted;
};

// 1 or -1, as verl scores.
inline Verification Signed(bool correct, std::optional<std::string> extracted) {
  return {correct, correct ? 1.0 : -1.0, std::move(extracted)};
}

// 1 or 0.
inline Verification ZeroOrOne(bool correct, std::optional<std::string> extracted) {
  return {correct, correct ? 1.0 : 0.0, std::move(extracted)};
}

}  // namespace pace

#endif  // PACE_REWARD_VERIFICATION_H_
