// ProgressGuard: makes every step complete, whatever the admission policy decides.
//
// It overturns two kinds of rejections and changes no other verdict:
//
//   freshest possible  the group's lag is at most j - u, where u is the oldest version that a
//                      group started now could sample from: no fresher group can arrive
//                      while this step waits
//   backstop           the step has seen ceil(batch / (1 - max_budget)) rejections; ten
//                      batches where the policy has no budget
//
// docs/method.md proves that every run with a live worker then completes its next step.
//
// Thread-safety: none.
#ifndef PACE_CONTROL_PROGRESS_GUARD_H_
#define PACE_CONTROL_PROGRESS_GUARD_H_

#include <cstdint>
#include <optional>

#include "core/decision.h"
#include "core/staleness.h"
#include "core/version.h"

namespace pace {

class ProgressGuard {
 public:
  ProgressGuard(int64_t batch, std::optional<double> max_budget);

  void BeginStep(PolicyVersion step);

  // Returns the final verdict and counts it.
  Decision Apply(const GroupSummary& group, Decision decision, std::optional<PolicyVersion> served);

  // Rejections in one step before the backstop applies.
  int64_t max_rejections() const { return max_rejections_; }
  // Of the step begun last.
  int64_t num_rejected() const { return num_rejected_; }
  int64_t num_guarded() const { return num_guarded_; }

  void Restore(PolicyVersion step, int64_t num_rejected, int64_t num_guarded);

 private:
  const int64_t max_rejections_;
  PolicyVersion step_;
  int64_t num_rejected_ = 0;
  int64_t num_guarded_ = 0;
};

}  // namespace pace

#endif  // PACE_CONTROL_PROGRESS_GUARD_H_
