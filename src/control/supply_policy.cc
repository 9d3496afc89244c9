#include "control/supply_policy.h"

#include "control/just_in_time.h"
#include "control/supply_policies.h"

namespace pace {

std::unique_ptr<SupplyPolicy> MakeSupplyPolicy(const SupplyOptions& options, int64_t batch) {
  switch (options.policy) {
    case SupplyKind::kThreshold:
      return std::make_unique<ThresholdSupply>(options.MaxOutstanding(batch));
    case SupplyKind::kQuota:
      return std::make_unique<QuotaSupply>(options.bound, batch);
    case SupplyKind::kVersionWindow:
      return std::make_unique<VersionWindowSupply>(options.bound, batch);
    case SupplyKind::kOverSampling:
      return std::make_unique<OverSamplingSupply>(options.MaxGroups(batch));
    case SupplyKind::kCancelling:
      return std::make_unique<CancellingSupply>(options.bound, options.MaxOutstanding(batch));
    case SupplyKind::kJustInTime:
      return std::make_unique<JustInTimeSupply>(batch, options.sync_interval,
                                                options.MaxOutstanding(batch));
  }
  PACE_CHECK(false, "unknown supply policy");
}

}  // namespace pace
