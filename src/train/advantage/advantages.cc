#include "train/advantage/advantages.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "train/math/metric.h"

namespace pace {
namespace {

// verl's constant: keeps a vanishing variance from blowing up.
constexpr double kTinyVariance = 1e-8;

AdvantageEstimator Make(const AdvantageOptions& options) {
  switch (options.kind) {
    case AdvantageKind::kDrGrpo:
      return GrpoAdvantage(options.dr_grpo);
    case AdvantageKind::kGae:
      return GaeAdvantage(options.gae);
    case AdvantageKind::kGpg:
      return GpgAdvantage(options.gpg);
    case AdvantageKind::kGrpo:
      return GrpoAdvantage(options.grpo);
    case AdvantageKind::kOpo:
      return OpoAdvantage();
    case AdvantageKind::kPassAtK:
      return PassAtKAdvantage(options.pass_at_k);
    case AdvantageKind::kReinforcePlusPlus:
      return ReinforcePlusPlusAdvantage(options.reinforce_plus_plus);
    case AdvantageKind::kReinforceBaseline:
      return ReinforceBaselineAdvantage(options.reinforce_baseline);
    case AdvantageKind::kRemax:
      return RemaxAdvantage();
    case AdvantageKind::kRloo:
      return RlooAdvantage(options.rloo);
  }
  PACE_CHECK(false, "no such estimator");
}

}  // namespace

Status RewardBatch::Validate() const {
  PACE_RETURN_IF_ERROR(layout.Validate());
  const size_t num_sequences = layout.num_sequences();
  const size_t num_tokens = layout.num_tokens();
  PACE_RETURN_IF_ERROR(CheckLength("rewards", rewards.size(), "sequences", num_sequences, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("token_rewards", token_rewards.size(), "tokens", num_tokens, true));
  PACE_RETURN_IF_ERROR(CheckLength("values", values.size(), "tokens", num_tokens, true));
  return CheckLength("baselines", baselines.size(), "sequences", num_sequences, true);
}

Result<Advantages> AdvantageEstimator::Estimate(const RewardBatch& batch) const {
  PACE_RETURN_IF_ERROR(batch.Validate());
  if (inputs().values) {
    PACE_RETURN_IF_ERROR(
        CheckLength("values", batch.values.size(), "tokens", batch.layout.num_tokens(), false));
  }
  if (inputs().baselines) {
    PACE_RETURN_IF_ERROR(CheckLength("baselines", batch.baselines.size(), "sequences",
                                     batch.layout.num_sequences(), false));
  }
  return compute_(batch);
}

Result<std::unique_ptr<AdvantageEstimator>> MakeAdvantageEstimator(
    const AdvantageOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  return std::make_unique<AdvantageEstimator>(Make(options));
}

Result<std::unique_ptr<AdvantageEstimator>> MakeAdvantageEstimator(std::string_view name,
                                                                   const NamedSettings& settings) {
  PACE_ASSIGN_OR_RETURN(const AdvantageOptions options, AdvantageNamed(name, settings));
  return MakeAdvantageEstimator(options);
}

GroupStatistics StatisticsOf(std::span<const size_t> members, std::span<const double> rewards) {
  GroupStatistics statistics;
  MeanOf mean;
  for (const size_t member : members) mean.Add(rewards[member]);
  statistics.mean = mean.value();
  statistics.equal = std::all_of(members.begin(), members.end(), [&](size_t member) {
    return rewards[member] == rewards[members.front()];
  });
  if (statistics.equal) {
    if (!members.empty()) statistics.mean = rewards[members.front()];
    return statistics;
  }
  double sum = 0;
  for (const size_t member : members) {
    const double difference = rewards[member] - statistics.mean;
    sum += difference * difference;
  }
  statistics.deviation = std::sqrt(sum / static_cast<double>(members.size() - 1));
  return statistics;
}

Advantages Broadcast(const SequenceLayout& layout, std::span<const double> scores) {
  Advantages out;
  out.advantages.assign(layout.num_tokens(), 0.0);
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] != 0) out.advantages[token] = scores[sequence];
    }
  }
  out.returns = out.advantages;
  return out;
}

std::vector<double> TokenRewards(const RewardBatch& batch) {
  const SequenceLayout& layout = batch.layout;
  std::vector<double> rewards(layout.num_tokens(), 0.0);
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    size_t last = layout.end(sequence);
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      last = token;
      if (!batch.token_rewards.empty()) rewards[token] = batch.token_rewards[token];
    }
    if (batch.token_rewards.empty() && last < layout.end(sequence)) {
      rewards[last] = batch.rewards[sequence];
    }
  }
  return rewards;
}

void Whiten(const SequenceLayout& layout, std::vector<double>& values) {
  MeanOf mean;
  const double* first = nullptr;
  bool equal = true;
  for (size_t token = 0; token < values.size(); ++token) {
    if (layout.mask[token] == 0) continue;
    if (first == nullptr) first = &values[token];
    equal = equal && values[token] == *first;
    mean.Add(values[token]);
  }
  double scale = 0;
  if (!equal) {
    double sum = 0;
    for (size_t token = 0; token < values.size(); ++token) {
      if (layout.mask[token] == 0) continue;
      const double difference = values[token] - mean.value();
      sum += difference * difference;
    }
    scale = 1 / std::sqrt(sum / (mean.weight() - 1) + kTinyVariance);
  }
  for (size_t token = 0; token < values.size(); ++token) {
    const bool counts = layout.mask[token] != 0 && !equal;
    values[token] = counts ? (values[token] - mean.value()) * scale : 0;
  }
}

}  // namespace pace
