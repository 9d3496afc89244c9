#include "control/start_window.h"

namespace pace {

StepPlan StartWindow::BeginStep(PolicyVersion step, const PoolView& pool) {
  plan_ = {.step = step, .occupancy = pool.occupancy};
  return plan_;
}

Decision StartWindow::Judge(const GroupSummary& group) const {
  Decision decision = Measure(group, plan_.step);
  decision.score = Score(group);
  const bool within = static_cast<double>(group.MaxTokenLag(plan_.step)) <= k_;
  decision.verdict = within ? Verdict::kAdmit : Verdict::kReject;
  decision.reason = within ? Reason::kWithinBound : Reason::kOverBound;
  return decision;
}

Status StartWindow::Restore(const AdmissionState& state) {
  plan_ = state.plan;
  return Status::Ok();
}

}  // namespace pace
