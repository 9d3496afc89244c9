#include "control/pool_admission.h"

#include <algorithm>
#include <cmath>

#include "control/progress_guard.h"

namespace pace {
namespace {

// The window only holds what is in the pool.
constexpr int64_t kNoWindowBound = int64_t{1} << 40;

// Whether the progress guard lets a step reject the group.
bool MayBeRejected(const GroupSummary& group, PolicyVersion step, const PoolView& pool) {
  return !pool.served.has_value() ||
         group.LagAt(step) > static_cast<double>(Lag(*pool.served, step));
}

// The share that `num_rejected` rejections are of the draws of a step.
double ShareOf(int64_t num_rejected, int64_t batch) {
  return static_cast<double>(num_rejected) / static_cast<double>(num_rejected + batch);
}

}  // namespace

PoolAdmission::PoolAdmission(const AdmissionOptions& options, int64_t batch)
    : options_(options),
      max_rejections_(ProgressGuard(batch, options.max_budget).max_rejections()),
      rate_(options, batch),
      score_(options, kNoWindowBound, /*min_observations=*/1) {}

StepPlan PoolAdmission::BeginStep(PolicyVersion step, const PoolView& pool) {
  std::vector<double> prefix_scores;
  int64_t num_rejectable = 0;
  for (const GroupSummary& group : pool.groups) {
    score_.Collect(group, prefix_scores);
    num_rejectable += MayBeRejected(group, step, pool) ? 1 : 0;
  }
  score_.Assign(prefix_scores);

  plan_ = rate_.BeginStep(step, pool);
  const int64_t num_spare = std::max<int64_t>(0, pool.occupancy - pool.batch);
  const int64_t most = std::min({num_spare, num_rejectable, max_rejections_});
  const double budget = std::min(*plan_.budget, ShareOf(most, pool.batch));
  plan_.budget = budget;
  // ShareOf and its inverse round; the error must not cost a rejection.
  constexpr double kRoundingError = 1e-9;
  const auto quota = static_cast<int64_t>(
      std::floor(budget * static_cast<double>(pool.batch) / (1.0 - budget) + kRoundingError));
  Choose(pool, std::min(quota, most));
  return plan_;
}

void PoolAdmission::Choose(const PoolView& pool, int64_t quota) {
  chosen_.clear();
  if (quota == 0) return;
  struct Ranked {
    double score;
    bool may_be_rejected;
    GroupId group;
  };
  std::vector<Ranked> ranked;
  for (const GroupSummary& group : pool.groups) {
    ranked.push_back({Score(group), MayBeRejected(group, plan_.step, pool), group.id});
  }
  // Of equal scores the group that was started first leaves first.
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    if (a.may_be_rejected != b.may_be_rejected) return a.may_be_rejected;
    return a.score != b.score ? a.score > b.score : a.group < b.group;
  });
  for (int64_t i = 0; i < quota; ++i) chosen_.push_back(ranked[static_cast<size_t>(i)].group);
  std::sort(chosen_.begin(), chosen_.end());
  plan_.cutoff = ranked[static_cast<size_t>(quota) - 1].score;
}

Decision PoolAdmission::Judge(const GroupSummary& group) const {
  Decision decision = score_.Of(group, plan_.step);
  if (!plan_.cutoff.has_value()) {
    decision.reason = Reason::kNoBudget;
    return decision;
  }
  const bool chosen = std::binary_search(chosen_.begin(), chosen_.end(), group.id);
  decision.verdict = chosen ? Verdict::kReject : Verdict::kAdmit;
  if (decision.score == *plan_.cutoff) {
    decision.reason = chosen ? Reason::kTieRejected : Reason::kTieAdmitted;
  } else if (decision.score > *plan_.cutoff) {
    decision.reason = chosen ? Reason::kOverCutoff : Reason::kQuotaSpent;
  } else {
    decision.reason = Reason::kUnderCutoff;
  }
  return decision;
}

AdmissionState PoolAdmission::Save() const {
  return {.step = plan_.step,
          .smoothed_rate = rate_.smoothed(),
          .prefix_scores = score_.Values(),
          .plan = plan_};
}

Status PoolAdmission::Restore(const AdmissionState& state) {
  PACE_RETURN_IF_ERROR(CheckWindow(state.prefix_scores, "prefix_scores"));
  PACE_RETURN_IF_ERROR(rate_.Restore(state.smoothed_rate));
  score_.Assign(state.prefix_scores);
  plan_ = state.plan;
  chosen_.clear();
  return Status::Ok();
}

}  // namespace pace
