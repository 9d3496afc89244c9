#include "control/pace_admission.h"

#include <algorithm>

namespace pace {
namespace {

constexpr uint32_t kTieStream = 0x7469;  // separates tie draws from other uses of the seed

}  // namespace

PaceAdmission::PaceAdmission(const AdmissionOptions& options, int64_t batch, uint64_t seed)
    : options_(options),
      tie_random_(seed, kTieStream),
      rate_(options, batch),
      scores_(options.Window(batch)),
      score_(options, options.Window(batch), options.min_observations) {}

StepPlan PaceAdmission::BeginStep(PolicyVersion step, const PoolView& pool) {
  scores_.Add(pending_scores_);
  score_.Add(pending_prefix_scores_);
  pending_scores_.clear();
  pending_prefix_scores_.clear();

  plan_ = rate_.BeginStep(step, pool);
  double budget = *plan_.budget;
  if (options_.reserve_batch) {
    const double spare = 1.0 - static_cast<double>(pool.batch) /
                                   static_cast<double>(std::max<int64_t>(pool.occupancy, 1));
    budget = std::min(budget, std::max(0.0, spare));
    plan_.budget = budget;
  }
  if (ScoresReady() && budget > 0) {
    const double cutoff = scores_.Quantile(1.0 - budget);
    plan_.cutoff = cutoff;
    const int64_t num_ties = scores_.NumEqual(cutoff);
    if (options_.ties == TieRule::kFractional && num_ties > 0) {
      const double owed = budget * static_cast<double>(scores_.size()) -
                          static_cast<double>(scores_.NumAbove(cutoff));
      plan_.tie_probability = std::clamp(owed / static_cast<double>(num_ties), 0.0, 1.0);
    }
  }
  return plan_;
}

bool PaceAdmission::TieIsRejected(GroupId group) const {
  return plan_.tie_probability > 0 &&
         tie_random_.Uniform(static_cast<uint64_t>(group.value()),
                             static_cast<uint64_t>(plan_.step.step())) < plan_.tie_probability;
}

Decision PaceAdmission::Judge(const GroupSummary& group) const {
  Decision decision = score_.Of(group, plan_.step);
  if (!ScoresReady()) {
    decision.reason = Reason::kWarmingUp;
  } else if (!plan_.cutoff.has_value()) {
    decision.reason = Reason::kNoBudget;
  } else if (decision.score > *plan_.cutoff) {
    decision.verdict = Verdict::kReject;
    decision.reason = Reason::kOverCutoff;
  } else if (decision.score == *plan_.cutoff && options_.ties == TieRule::kFractional) {
    const bool rejected = TieIsRejected(group.id);
    decision.verdict = rejected ? Verdict::kReject : Verdict::kAdmit;
    decision.reason = rejected ? Reason::kTieRejected : Reason::kTieAdmitted;
  } else {
    decision.reason = Reason::kUnderCutoff;
  }
  return decision;
}

void PaceAdmission::Observe(const GroupSummary& group, const Decision& decision) {
  pending_scores_.push_back(decision.score);
  score_.Collect(group, pending_prefix_scores_);
}

AdmissionState PaceAdmission::Save() const {
  return {.step = plan_.step,
          .smoothed_rate = rate_.smoothed(),
          .scores = scores_.Values(),
          .prefix_scores = score_.Values(),
          .pending_scores = pending_scores_,
          .pending_prefix_scores = pending_prefix_scores_,
          .plan = plan_};
}

Status PaceAdmission::Restore(const AdmissionState& state) {
  PACE_RETURN_IF_ERROR(CheckWindow(state.scores, "scores"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.prefix_scores, "prefix_scores"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.pending_scores, "pending_scores"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.pending_prefix_scores, "pending_prefix_scores"));
  PACE_RETURN_IF_ERROR(rate_.Restore(state.smoothed_rate));
  scores_.Assign(state.scores);
  score_.Assign(state.prefix_scores);
  pending_scores_ = state.pending_scores;
  pending_prefix_scores_ = state.pending_prefix_scores;
  plan_ = state.plan;
  return Status::Ok();
}

}  // namespace pace
