#include "control/accept_all.h"

#include <utility>

namespace pace {

AcceptAll::AcceptAll(std::unique_ptr<AdmissionPolicy> observed) : observed_(std::move(observed)) {}

StepPlan AcceptAll::BeginStep(PolicyVersion step, const PoolView& pool) {
  plan_ = observed_ != nullptr ? observed_->BeginStep(step, pool)
                               : StepPlan{.step = step, .occupancy = pool.occupancy};
  return plan_;
}

Decision AcceptAll::Judge(const GroupSummary& group) const {
  Decision decision;
  if (observed_ != nullptr) {
    decision = observed_->Judge(group);
  } else {
    decision = Measure(group, plan_.step);
    decision.score = group.LagAt(plan_.step);
  }
  decision.verdict = Verdict::kAdmit;
  decision.reason = Reason::kUnfiltered;
  return decision;
}

void AcceptAll::Observe(const GroupSummary& group, const Decision& decision) {
  if (observed_ != nullptr) observed_->Observe(group, decision);
}

double AcceptAll::Score(const GroupSummary& group) const {
  return observed_ != nullptr ? observed_->Score(group) : group.LagAt(plan_.step);
}

bool AcceptAll::NeedsMembers() const {
  return observed_ != nullptr && observed_->NeedsMembers();
}

AdmissionState AcceptAll::Save() const {
  return observed_ != nullptr ? observed_->Save()
                              : AdmissionState{.step = plan_.step, .plan = plan_};
}

Status AcceptAll::Restore(const AdmissionState& state) {
  if (observed_ != nullptr) PACE_RETURN_IF_ERROR(observed_->Restore(state));
  plan_ = state.plan;
  return Status::Ok();
}

}  // namespace pace
