// ThresholdSupply: outstanding credits stay within (1 + threshold) batches per
// sync interval. Threshold 0 with one step per sync is Sync: no group starts
// before the weights of the step before have reached every worker.
#ifndef PACE_CONTROL_THRESHOLD_SUPPLY_H_
#define PACE_CONTROL_THRESHOLD_SUPPLY_H_

#include "control/supply_policy.h"

namespace pace {

class ThresholdSupply final : public SupplyPolicy {
 public:
  explicit ThresholdSupply(int64_t max_outstanding) : max_outstanding_(max_outstanding) {}

  int64_t NumToStart(const SupplyView& view) const override {
    return max_outstanding_ - view.num_outstanding();
  }
  std::optional<int64_t> MaxOutstanding() const override { return max_outstanding_; }

 private:
  const int64_t max_outstanding_;
};

}  // namespace pace

#endif  // PACE_CONTROL_THRESHOLD_SUPPLY_H_
