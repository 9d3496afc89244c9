#include "control/progress_guard.h"

#include <algorithm>
#include <cmath>

namespace pace {
namespace {

// The backstop of a policy that names no budget, in batches.
constexpr int64_t kBackstopBatches = 10;
// A budget next to 1 must not put the backstop out of reach.
constexpr double kMaxBackstopBatches = 1e6;

int64_t MaxRejections(int64_t batch, std::optional<double> max_budget) {
  if (!max_budget.has_value() || *max_budget >= 1) return kBackstopBatches * batch;
  const auto size = static_cast<double>(batch);
  // 12 / (1 - 0.9) is 120 and a rounding error; the error must not be rounded up.
  const double exact = size / (1.0 - *max_budget);
  return static_cast<int64_t>(
      std::min(std::ceil(exact * (1.0 - 1e-12)), kMaxBackstopBatches * size));
}

}  // namespace

ProgressGuard::ProgressGuard(int64_t batch, std::optional<double> max_budget)
    : max_rejections_(MaxRejections(batch, max_budget)) {}

void ProgressGuard::BeginStep(PolicyVersion step) {
  Restore(step, 0, 0);
}

Decision ProgressGuard::Apply(const GroupSummary& group, Decision decision,
                              std::optional<PolicyVersion> served) {
  if (decision.verdict == Verdict::kAdmit) return decision;
  if (served.has_value() && group.LagAt(step_) <= static_cast<double>(Lag(*served, step_))) {
    decision.reason = Reason::kFreshestPossible;
  } else if (num_rejected_ >= max_rejections_) {
    decision.reason = Reason::kProgressGuard;
  } else {
    ++num_rejected_;
    return decision;
  }
  decision.verdict = Verdict::kAdmit;
  ++num_guarded_;
  return decision;
}

void ProgressGuard::Restore(PolicyVersion step, int64_t num_rejected, int64_t num_guarded) {
  step_ = step;
  num_rejected_ = num_rejected;
  num_guarded_ = num_guarded;
}

}  // namespace pace
