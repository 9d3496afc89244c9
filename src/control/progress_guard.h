// ProgressGuard: why every step completes, whatever the policy answers.
//
// It looks at rejections only and turns two kinds of them round:
//
//   freshest possible  a group whose lag is at most j - u, u the oldest version
//                      that a group started now could sample from: nothing
//                      fresher can come while this step waits
//   backstop           after ceil(batch / (1 - max_budget)) rejections in one
//                      step, ten batches where no budget is named
//
// A verdict the policy gave to admit stands as it is. docs/method.md proves
// that with these two every run with a live worker completes its next step.
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

  // The verdict that stands. Counts it.
  Decision Apply(const GroupSummary& group, Decision decision, std::optional<PolicyVersion> served);

  // Rejections after which the backstop opens.
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
