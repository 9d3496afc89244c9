#include "control/staleness_score.h"

#include "control/admission_policy.h"
#include "core/exact_math.h"

namespace pace {

double SharpenedPercentile(double percentile, double gamma) {
  const double rises = exact::Pow(percentile, gamma);
  const double falls = exact::Pow(1.0 - percentile, gamma);
  return rises / (rises + falls);
}

StalenessScore::StalenessScore(const AdmissionOptions& options, int64_t window,
                               int64_t min_observations)
    : options_(options), min_observations_(min_observations), window_(window) {}

double StalenessScore::Weight(const std::optional<double>& prefix_score,
                              std::optional<double>& percentile) const {
  switch (options_.generation_weight) {
    case GenerationWeight::kOne:
      return 1;
    case GenerationWeight::kZero:
      return 0;
    case GenerationWeight::kPrefix:
      break;
  }
  if (!prefix_score.has_value() || window_.size() < min_observations_) {
    return options_.unscored_weight;
  }
  percentile = window_.Percentile(*prefix_score);
  return SharpenedPercentile(*percentile, options_.gamma);
}

Decision StalenessScore::Of(const GroupSummary& group, PolicyVersion step) const {
  Decision decision = Measure(group, step);
  const double waiting = options_.CountsPoolOnly() ? group.WaitingPool(step) : decision.waiting;
  if (!ReadsMembers()) {
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

void StalenessScore::Collect(const GroupSummary& group, std::vector<double>& prefix_scores) const {
  // A score is ranked among its own kind: members among members, groups among groups.
  if (ReadsMembers()) {
    for (const MemberSummary& member : group.members) {
      if (member.prefix_score.has_value()) prefix_scores.push_back(*member.prefix_score);
    }
  } else if (group.prefix_score.has_value()) {
    prefix_scores.push_back(*group.prefix_score);
  }
}

}  // namespace pace
