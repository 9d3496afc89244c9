// OverSamplingSupply: APRIL's rule. More groups are begun than a batch needs;
// none is begun while a batch is trained on, and what is unfinished by then goes
// on under the next weights, before anything new.
//
// Whether the unfinished ones rest meanwhile is the layout's affair: colocated
// engines do.
#ifndef PACE_CONTROL_OVER_SAMPLING_SUPPLY_H_
#define PACE_CONTROL_OVER_SAMPLING_SUPPLY_H_

#include "control/supply_policy.h"

namespace pace {

class OverSamplingSupply final : public SupplyPolicy {
 public:
  // REQUIRES: over_sampled >= the batch
  explicit OverSamplingSupply(int64_t over_sampled) : over_sampled_(over_sampled) {}

  int64_t NumToStart(const SupplyView& view) const override {
    if (view.training) return 0;
    return over_sampled_ - view.num_running - view.num_pooled - view.num_selected;
  }

 private:
  const int64_t over_sampled_;
};

}  // namespace pace

#endif  // PACE_CONTROL_OVER_SAMPLING_SUPPLY_H_
