// CancellingSupply: prime-rl's rule. A threshold on what is outstanding, and a
// running group is stopped once it was dispatched more than `max_lag` versions
// ago: no compute goes into what admission would turn away.
//
// Together with oldest_token. A prompt that always takes longer comes back at
// most supply.max_attempts times.
#ifndef PACE_CONTROL_CANCELLING_SUPPLY_H_
#define PACE_CONTROL_CANCELLING_SUPPLY_H_

#include "control/supply_policy.h"

namespace pace {

class CancellingSupply final : public SupplyPolicy {
 public:
  CancellingSupply(int64_t max_lag, int64_t max_outstanding)
      : max_lag_(max_lag), max_outstanding_(max_outstanding) {}

  int64_t NumToStart(const SupplyView& view) const override {
    return max_outstanding_ - view.num_outstanding();
  }
  bool MayAbandon() const override { return true; }
  Abandon ShouldAbandon(const RunningGroup& group, const SupplyView& view) const override {
    return Lag(group.dispatched, view.trainer) > max_lag_ ? Abandon::kDrop : Abandon::kNo;
  }
  std::optional<int64_t> MaxOutstanding() const override { return max_outstanding_; }

 private:
  const int64_t max_lag_;
  const int64_t max_outstanding_;
};

}  // namespace pace

#endif  // PACE_CONTROL_CANCELLING_SUPPLY_H_
