// SurplusRate: the share of the pool beyond N_tar, smoothed over steps, as a budget of rejections.
//
// With r_j that share as step j begins, the smoothed rate is s_j = beta s_{j-1} + (1 - beta) r_j,
// and the budget is s_j up to max_budget. docs/method.md 2.2 gives the reason.
//
// Thread-safety: none.
#ifndef PACE_CONTROL_SURPLUS_RATE_H_
#define PACE_CONTROL_SURPLUS_RATE_H_

#include <cstdint>

#include "config/admission_options.h"
#include "control/admission_policy.h"
#include "core/decision.h"
#include "core/status.h"
#include "core/version.h"

namespace pace {

class SurplusRate {
 public:
  SurplusRate(const AdmissionOptions& options, int64_t batch);

  // The plan of a step that begins now, without a cutoff.
  StepPlan BeginStep(PolicyVersion step, const PoolView& pool);

  // s_j of the last step.
  double smoothed() const { return smoothed_; }
  Status Restore(double smoothed);

 private:
  const int64_t target_occupancy_;
  const double beta_;
  const double max_budget_;
  double smoothed_ = 0;
};

}  // namespace pace

#endif  // PACE_CONTROL_SURPLUS_RATE_H_
