// VersionWindowSupply: DORA's rule. At most `window` versions behind the trainer
// are alive.
//
// As a count: while the oldest group that is not trained on was dispatched at
// version d, no more groups are kept than steps 0 ... d + window consume. With
// accept_all no token of a trained group is older than `window` steps;
// docs/policies.md proves it.
#ifndef PACE_CONTROL_VERSION_WINDOW_SUPPLY_H_
#define PACE_CONTROL_VERSION_WINDOW_SUPPLY_H_

#include <algorithm>

#include "control/supply_policy.h"

namespace pace {

class VersionWindowSupply final : public SupplyPolicy {
 public:
  VersionWindowSupply(int64_t window, int64_t batch) : window_(window), batch_(batch) {}

  int64_t NumToStart(const SupplyView& view) const override {
    const PolicyVersion next = view.oldest_promised.value_or(view.published);
    const PolicyVersion oldest = std::min(view.oldest_dispatch.value_or(next), next);
    const int64_t kept = view.num_started - view.num_rejected - view.num_lost;
    return (oldest.step() + window_ + 1) * batch_ - kept;
  }

 private:
  const int64_t window_;
  const int64_t batch_;
};

}  // namespace pace

#endif  // PACE_CONTROL_VERSION_WINDOW_SUPPLY_H_
