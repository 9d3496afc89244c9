#include "control/pace_admission.h"

#include <algorithm>

#include "core/exact_math.h"

namespace pace {
namespace {

constexpr uint32_t kTieStream = 0x7469;  // separates tie draws from other uses of the seed

double TargetRate(int64_t occupancy, int64_t target_occupancy) {
  const auto excess = static_cast<double>(occupancy - target_occupancy);
  return std::clamp(excess / static_cast<double>(std::max<int64_t>(occupancy, 1)), 0.0, 1.0);
}

}  // namespace

double SharpenedPercentile(double percentile, double gamma) {
  const double rises = exact::Pow(percentile, gamma);
  const double falls = exact::Pow(1.0 - percentile, gamma);
  return rises / (rises + falls);
}

PaceAdmission::PaceAdmission(const AdmissionOptions& options, int64_t batch, uint64_t seed)
    : options_(options),
      target_occupancy_(options.TargetOccupancy(batch)),
      tie_random_(seed, kTieStream),
      scores_(options.Window(batch)),
      prefix_scores_(options.Window(batch)) {}

StepPlan PaceAdmission::BeginStep(PolicyVersion step, const PoolView& pool) {
  scores_.Add(pending_scores_);
  prefix_scores_.Add(pending_prefix_scores_);
  pending_scores_.clear();
  pending_prefix_scores_.clear();

  const double rate = TargetRate(pool.occupancy, target_occupancy_);
  smoothed_rate_ = options_.beta * smoothed_rate_ + (1.0 - options_.beta) * rate;
  double budget = std::min(smoothed_rate_, options_.max_budget);
  if (options_.reserve_batch) {
    const double spare = 1.0 - static_cast<double>(pool.batch) /
                                   static_cast<double>(std::max<int64_t>(pool.occupancy, 1));
    budget = std::min(budget, std::max(0.0, spare));
  }

  plan_ = {.step = step,
           .occupancy = pool.occupancy,
           .target_rate = rate,
           .smoothed_rate = smoothed_rate_,
           .budget = budget,
           .cutoff = std::nullopt,
           .tie_probability = 0};
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

double PaceAdmission::Weight(const std::optional<double>& prefix_score,
                             std::optional<double>& percentile) const {
  switch (options_.generation_weight) {
    case GenerationWeight::kOne:
      return 1;
    case GenerationWeight::kZero:
      return 0;
    case GenerationWeight::kPrefix:
      break;
  }
  if (!prefix_score.has_value() || !PrefixReady()) return options_.unscored_weight;
  percentile = prefix_scores_.Percentile(*prefix_score);
  return SharpenedPercentile(*percentile, options_.gamma);
}

Decision PaceAdmission::ScoreOf(const GroupSummary& group) const {
  Decision decision = Measure(group, plan_.step);
  const double waiting =
      options_.CountsPoolOnly() ? group.WaitingPool(plan_.step) : decision.waiting;
  if (options_.weight_scope == WeightScope::kGroup) {
    decision.weight = Weight(group.prefix_score, decision.percentile);
    decision.score = options_.wait_weight * waiting + decision.weight * group.generation;
    return decision;
  }
  double weight_sum = 0;
  double weighted_sum = 0;
  double percentile_sum = 0;
  int64_t num_percentiles = 0;
  for (const MemberSummary& member : group.members) {
    std::optional<double> percentile;
    const double weight = Weight(member.prefix_score, percentile);
    weight_sum += weight;
    weighted_sum += weight * member.generation;
    if (percentile.has_value()) {
      percentile_sum += *percentile;
      ++num_percentiles;
    }
  }
  const auto num_members = static_cast<double>(group.num_members);
  decision.weight = weight_sum / num_members;
  if (num_percentiles > 0) {
    decision.percentile = percentile_sum / static_cast<double>(num_percentiles);
  }
  decision.score = options_.wait_weight * waiting + weighted_sum / num_members;
  return decision;
}

bool PaceAdmission::TieIsRejected(GroupId group) const {
  return plan_.tie_probability > 0 &&
         tie_random_.Uniform(static_cast<uint64_t>(group.value()),
                             static_cast<uint64_t>(plan_.step.step())) < plan_.tie_probability;
}

Decision PaceAdmission::Judge(const GroupSummary& group) const {
  Decision decision = ScoreOf(group);
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
  // A score is ranked among its own kind: members among members, groups among groups.
  if (options_.weight_scope == WeightScope::kMember) {
    for (const MemberSummary& member : group.members) {
      if (member.prefix_score.has_value()) pending_prefix_scores_.push_back(*member.prefix_score);
    }
  } else if (group.prefix_score.has_value()) {
    pending_prefix_scores_.push_back(*group.prefix_score);
  }
}

AdmissionState PaceAdmission::Save() const {
  return {.step = plan_.step,
          .smoothed_rate = smoothed_rate_,
          .scores = scores_.Values(),
          .prefix_scores = prefix_scores_.Values(),
          .pending_scores = pending_scores_,
          .pending_prefix_scores = pending_prefix_scores_,
          .plan = plan_};
}

Status PaceAdmission::Restore(const AdmissionState& state) {
  if (!(state.smoothed_rate >= 0 && state.smoothed_rate <= 1)) {
    return InvalidArgument("smoothed_rate = ", state.smoothed_rate, ": must be in [0, 1]");
  }
  PACE_RETURN_IF_ERROR(CheckWindow(state.scores, "scores"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.prefix_scores, "prefix_scores"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.pending_scores, "pending_scores"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.pending_prefix_scores, "pending_prefix_scores"));
  smoothed_rate_ = state.smoothed_rate;
  scores_.Assign(state.scores);
  prefix_scores_.Assign(state.prefix_scores);
  pending_scores_ = state.pending_scores;
  pending_prefix_scores_ = state.pending_prefix_scores;
  plan_ = state.plan;
  return Status::Ok();
}

}  // namespace pace
