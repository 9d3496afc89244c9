// OldestToken: admit a group whose oldest token is at most k steps old.
//
// The bound prime-rl and XTuner use: one token sampled before a weight sync
// makes the whole group old, so long responses are the first to go.
#ifndef PACE_CONTROL_OLDEST_TOKEN_H_
#define PACE_CONTROL_OLDEST_TOKEN_H_

#include "control/lag_bound.h"

namespace pace {

class OldestToken final : public LagBound {
 public:
  explicit OldestToken(double k) : LagBound(k) {}

 private:
  double LagOf(const GroupSummary& group, PolicyVersion step) const override {
    return static_cast<double>(group.MaxTokenLag(step));
  }
};

}  // namespace pace

#endif  // PACE_CONTROL_OLDEST_TOKEN_H_
