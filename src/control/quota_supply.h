// QuotaSupply: AReaL's rule. Groups begun and kept stay within those that the
// steps up to version + bound consume.
//
// A count, not a bound on any group's lag: one slow group may be overtaken by
// any number of steps.
#ifndef PACE_CONTROL_QUOTA_SUPPLY_H_
#define PACE_CONTROL_QUOTA_SUPPLY_H_

#include "control/supply_policy.h"

namespace pace {

class QuotaSupply final : public SupplyPolicy {
 public:
  QuotaSupply(int64_t bound, int64_t batch) : bound_(bound), batch_(batch) {}

  int64_t NumToStart(const SupplyView& view) const override {
    const int64_t allowed = (bound_ + view.published.step() + 1) * batch_;
    const int64_t accepted = view.num_pooled + view.num_selected + view.num_trained;
    return allowed - accepted - view.num_running;
  }

 private:
  const int64_t bound_;
  const int64_t batch_;
};

}  // namespace pace

#endif  // PACE_CONTROL_QUOTA_SUPPLY_H_
