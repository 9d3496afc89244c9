// What policies share, and the two factories: options in, policy out.
#include "control/accept_all.h"
#include "control/admission_policy.h"
#include "control/oldest_token.h"
#include "control/pace_admission.h"
#include "control/stale_k.h"
#include "control/supply_policy.h"
#include "control/threshold_supply.h"

namespace pace {

Decision Measure(const GroupSummary& group, PolicyVersion step) {
  Decision decision;
  decision.waiting = group.Waiting(step);
  decision.generation = group.generation;
  decision.prefix_score = group.prefix_score;
  return decision;
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
  }
  PACE_CHECK(false, "unknown admission policy");
}

std::unique_ptr<SupplyPolicy> MakeSupplyPolicy(const SupplyOptions& options, int64_t batch) {
  return std::make_unique<ThresholdSupply>(options.MaxOutstanding(batch));
}

}  // namespace pace
