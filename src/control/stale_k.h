// StaleK: admit a group whose lag is at most k.
//
// The lag is the mean over tokens, then over members; or, by option, that of
// the stalest member.
#ifndef PACE_CONTROL_STALE_K_H_
#define PACE_CONTROL_STALE_K_H_

#include "control/lag_bound.h"

namespace pace {

class StaleK final : public LagBound {
 public:
  StaleK(double k, StaleKMeasure measure) : LagBound(k), measure_(measure) {}

 private:
  double LagOf(const GroupSummary& group, PolicyVersion step) const override {
    return measure_ == StaleKMeasure::kMean ? group.LagAt(step) : group.MaxMemberLag(step);
  }

  const StaleKMeasure measure_;
};

}  // namespace pace

#endif  // PACE_CONTROL_STALE_K_H_
