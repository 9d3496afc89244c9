#include "control/admission_policy.h"

#include <algorithm>
#include <cmath>

#include "control/accept_all.h"
#include "control/fair_admission.h"
#include "control/lag_bound.h"
#include "control/pace_admission.h"
#include "control/pool_admission.h"
#include "core/printable.h"

namespace pace {

double PoolView::SurplusOver(int64_t target_occupancy) const {
  const auto excess = static_cast<double>(occupancy - target_occupancy);
  return std::clamp(excess / static_cast<double>(std::max<int64_t>(occupancy, 1)), 0.0, 1.0);
}

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

Status CheckBuiltIn(const AdmissionOptions& options) {
  if (options.policy != AdmissionKind::kPython) return Status::Ok();
  return InvalidArgument("admission.policy = ", Printable(options.python_class),
                         ": must be a built-in policy here (pace train, compare, replay and sim "
                         "without --sweep run one in Python)");
}

std::unique_ptr<AdmissionPolicy> MakeAdmissionPolicy(const AdmissionOptions& options, int64_t batch,
                                                     uint64_t seed) {
  switch (options.policy) {
    case AdmissionKind::kPace:
      if (options.cutoff == CutoffRule::kPool) {
        return std::make_unique<PoolAdmission>(options, batch);
      }
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
    case AdmissionKind::kPython:
      break;
  }
  PACE_CHECK(false, "unknown admission policy");
}

}  // namespace pace
