// LagBound: what stale_k, oldest_token and start_window share. A group is admitted when its
// lag, as the policy measures it, is at most k. Nothing is remembered.
#ifndef PACE_CONTROL_LAG_BOUND_H_
#define PACE_CONTROL_LAG_BOUND_H_

#include "control/admission_policy.h"

namespace pace {

class LagBound : public AdmissionPolicy {
 public:
  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) final;
  Decision Judge(const GroupSummary& group) const final;
  void Observe(const GroupSummary&, const Decision&) final {}
  double Score(const GroupSummary& group) const override { return LagOf(group, plan_.step); }
  AdmissionState Save() const final { return {.step = plan_.step, .plan = plan_}; }
  Status Restore(const AdmissionState& state) final;

 protected:
  explicit LagBound(double k) : k_(k) {}
  virtual double LagOf(const GroupSummary& group, PolicyVersion step) const = 0;

 private:
  const double k_;
  StepPlan plan_;
};

}  // namespace pace

#endif  // PACE_CONTROL_LAG_BOUND_H_
