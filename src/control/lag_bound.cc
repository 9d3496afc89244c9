#include "control/lag_bound.h"

namespace pace {

StepPlan LagBound::BeginStep(PolicyVersion step, const PoolView& pool) {
  plan_ = {.step = step, .occupancy = pool.occupancy};
  return plan_;
}

Decision LagBound::Judge(const GroupSummary& group) const {
  Decision decision = Measure(group, plan_.step);
  decision.score = LagOf(group, plan_.step);
  const bool within = decision.score <= k_;
  decision.verdict = within ? Verdict::kAdmit : Verdict::kReject;
  decision.reason = within ? Reason::kWithinBound : Reason::kOverBound;
  return decision;
}

Status LagBound::Restore(const AdmissionState& state) {
  plan_ = state.plan;
  return Status::Ok();
}

}  // namespace pace
