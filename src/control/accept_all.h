// AcceptAll: unfiltered asynchronous training.
//
// With admission.observe it also computes and reports PACE's scores, windows and budget, and
// still admits everything. Without, a group's admission score is its lag.
#ifndef PACE_CONTROL_ACCEPT_ALL_H_
#define PACE_CONTROL_ACCEPT_ALL_H_

#include <memory>

#include "control/admission_policy.h"

namespace pace {

class AcceptAll final : public AdmissionPolicy {
 public:
  // `observed` may be null; otherwise its numbers are reported.
  explicit AcceptAll(std::unique_ptr<AdmissionPolicy> observed);

  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override;
  Decision Judge(const GroupSummary& group) const override;
  void Observe(const GroupSummary& group, const Decision& decision) override;
  double Score(const GroupSummary& group) const override;
  bool NeedsMembers() const override;
  AdmissionState Save() const override;
  Status Restore(const AdmissionState& state) override;

 private:
  const std::unique_ptr<AdmissionPolicy> observed_;
  StepPlan plan_;
};

}  // namespace pace

#endif  // PACE_CONTROL_ACCEPT_ALL_H_
