// StartWindow: NeMo RL's rule. A group is trained on within k versions of its
// start; under draw order lowest_score the oldest start comes first.
//
// The verdict is that of oldest_token; the order is what differs: it serves what
// is about to fall out of the window, where oldest_token's score puts it last.
// Do not bound the pool with it: a full pool evicts the highest score, which
// here is the freshest group.
#ifndef PACE_CONTROL_START_WINDOW_H_
#define PACE_CONTROL_START_WINDOW_H_

#include "control/lag_bound.h"

namespace pace {

class StartWindow final : public LagBound {
 public:
  explicit StartWindow(double k) : LagBound(k) {}

  double Score(const GroupSummary& group) const override {
    return static_cast<double>(group.oldest.step());
  }

 private:
  double LagOf(const GroupSummary& group, PolicyVersion step) const override {
    return static_cast<double>(group.MaxTokenLag(step));
  }
};

}  // namespace pace

#endif  // PACE_CONTROL_START_WINDOW_H_
