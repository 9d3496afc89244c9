// PythonPolicy: an admission policy that is a class of the user's, in a Python process.
//
//   PACE_ASSIGN_OR_RETURN(const auto policy, OpenAdmissionPolicy(settings.admission, batch, seed));
//
// The process is started once, by the thread that runs the coordinator, and asked one question at
// a time, each within admission.timeout. It is never started again: what it knew would be lost.
// When it raises, hangs, ends or gives no answer, failure() says so in one line and the run ends.
//
// Save asks it for its state: what its method state() gives, or else its attributes.
//
// Thread-safety: none; it lives no longer than the thread that opened it.
#ifndef PACE_JUDGE_PYTHON_POLICY_H_
#define PACE_JUDGE_PYTHON_POLICY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "config/admission_options.h"
#include "config/reward_options.h"
#include "control/admission_policy.h"
#include "core/status.h"
#include "judge/policy_call.h"
#include "judge/reward_process.h"

namespace pace {

class PythonPolicy final : public AdmissionPolicy {
 public:
  // Waits until the policy is made; failure() where it cannot be. With `saved` the run will save
  // it: a state that cannot be is found in the first two steps.
  PythonPolicy(const PythonName& name, const AdmissionOptions& options, bool saved);

  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override;
  Decision Judge(const GroupSummary& group) const override;
  void Observe(const GroupSummary& group, const Decision& decision) override;
  double Score(const GroupSummary& group) const override;
  const Status* failure() const override { return failure_.ok() ? nullptr : &failure_; }
  AdmissionState Save() const override;
  Status Restore(const AdmissionState& state) override;

 private:
  Status Start(const PythonName& name, const AdmissionOptions& options);
  // One call; none after a failure. `what` stands in errors: "judge of group 7".
  std::optional<PolicyAnswer> Ask(const std::string& what, const std::string& message) const;
  void Fail(const std::string& what, RewardFault fault, const std::string& why) const;

  const std::string name_;  // FILE:CLASS
  const Seconds timeout_;
  const bool saved_;
  bool begins_ = false, scores_ = false, observes_ = false;  // methods that it has
  int64_t num_begun_ = 0;
  StepPlan plan_;
  // Asking changes these, not what a caller sees.
  mutable std::optional<RewardProcess> process_;
  mutable Status failure_;
};

// The policy that the options name, in Python or built in.
Result<std::unique_ptr<AdmissionPolicy>> OpenAdmissionPolicy(const AdmissionOptions& options,
                                                             int64_t batch, uint64_t seed,
                                                             bool saved = false);

}  // namespace pace

#endif  // PACE_JUDGE_PYTHON_POLICY_H_
