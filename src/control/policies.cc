// What policies share, and the two factories: options in, policy out.
#include <cmath>

#include "control/accept_all.h"
#include "control/admission_policy.h"
#include "control/cancelling_supply.h"
#include "control/fair_admission.h"
#include "control/oldest_token.h"
#include "control/over_sampling_supply.h"
#include "control/pace_admission.h"
#include "control/quota_supply.h"
#include "control/stale_k.h"
#include "control/start_window.h"
#include "control/supply_policy.h"
#include "control/threshold_supply.h"
#include "control/version_window_supply.h"

namespace pace {

Decision Measure(const GroupSummary& group, PolicyVersion step) {
  Decision decision;
  decision.waiting = group.Waiting(step);
  decision.generation = group.generation;
  decision.prefix_score = group.prefix_score;
  return decision;
}

Status CheckWindow(const std::vector<double>& values, const char* name) {
  for (const double value : values) {
    if (!std::isfinite(value) || value < 0) {
      return InvalidArgument(name, " = ", value, ": must be finite and >= 0");
    }
  }
  return Status::Ok();
}

std::unique_ptr<AdmissionPolicy> MakeAdmissionPolicy(const AdmissionOptions& options, int64_t batch,
                                                     uint64_t seed) {
  switch (options.policy) {
    case AdmissionKind::kPace:
      return std::make_unique<PaceAdmission>(options, batch, seed);
    case AdmissionKind::kStaleK:
      return std::make_unique<StaleK>(options.k, options.k_measure);
    case AdmissionKind::kAcceptAll:
      return std::make_unique<AcceptAll>(
          options.observe ? std::make_unique<PaceAdmission>(options, batch, seed) : nullptr);
    case AdmissionKind::kOldestToken:
      return std::make_unique<OldestToken>(options.k);
    case AdmissionKind::kPaceFair:
      return std::make_unique<FairAdmission>(options, batch, seed);
    case AdmissionKind::kStartWindow:
      return std::make_unique<StartWindow>(options.k);
  }
  PACE_CHECK(false, "unknown admission policy");
}

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
  }
  PACE_CHECK(false, "unknown supply policy");
}

}  // namespace pace
