#include "control/surplus_rate.h"

#include <algorithm>

namespace pace {

SurplusRate::SurplusRate(const AdmissionOptions& options, int64_t batch)
    : target_occupancy_(options.TargetOccupancy(batch)),
      beta_(options.beta),
      max_budget_(options.max_budget) {}

StepPlan SurplusRate::BeginStep(PolicyVersion step, const PoolView& pool) {
  const double rate = pool.SurplusOver(target_occupancy_);
  smoothed_ = beta_ * smoothed_ + (1.0 - beta_) * rate;
  return {.step = step,
          .occupancy = pool.occupancy,
          .target_rate = rate,
          .smoothed_rate = smoothed_,
          .budget = std::min(smoothed_, max_budget_),
          .cutoff = std::nullopt,
          .tie_probability = 0};
}

Status SurplusRate::Restore(double smoothed) {
  if (!(smoothed >= 0 && smoothed <= 1)) {
    return InvalidArgument("smoothed_rate = ", smoothed, ": must be in [0, 1]");
  }
  smoothed_ = smoothed;
  return Status::Ok();
}

}  // namespace pace
