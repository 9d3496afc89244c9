#include "train/batch_advantages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace pace {
namespace {

// Population variance over policy tokens.
template <typename ValueOf>
double Variance(const SequenceLayout& layout, const ValueOf& value_of) {
  MeanOf mean;
  for (size_t token = 0; token < layout.num_tokens(); ++token) {
    if (layout.mask[token] != 0) mean.Add(value_of(token));
  }
  MeanOf square;
  for (size_t token = 0; token < layout.num_tokens(); ++token) {
    if (layout.mask[token] == 0) continue;
    const double difference = value_of(token) - mean.value();
    square.Add(difference * difference);
  }
  return square.value();
}

// 0 where there is nothing to explain.
Metric ExplainedVariance(const Minibatch& batch) {
  const SequenceLayout layout = batch.layout();
  const double all = Variance(layout, [&](size_t token) { return batch.returns[token]; });
  const double left =
      Variance(layout, [&](size_t token) { return batch.returns[token] - batch.values[token]; });
  return {"train/explained_variance", all > 0 ? 1 - left / all : 0, 1};
}

Status CollectBaselines(const Minibatch& batch, std::vector<double>& baselines,
                        MetricList& metrics) {
  MeanOf mean;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const std::optional<double>& baseline = batch.sequences[i]->baseline;
    if (!baseline.has_value()) {
      return InvalidArgument("sequence ", i, ": has no baseline, the reward of a greedy response");
    }
    baselines.push_back(*baseline);
    mean.Add(*baseline);
  }
  MergeMetrics({mean.As("train/greedy_reward")}, metrics);
  return Status::Ok();
}

// w of each sequence relative to the largest in its scope: a baseline does not
// change with a common factor, and this one cannot overflow.
std::vector<double> RelativeWeights(const OpobOptions& options, const SequenceLayout& layout,
                                    const std::vector<SequenceSum>& log_ratios) {
  const double bound = options.max_weight.has_value() ? std::log(*options.max_weight)
                                                      : std::numeric_limits<double>::infinity();
  std::vector<std::vector<size_t>> scopes = GroupMembers(layout);
  if (options.scope == OpobOptions::Scope::kMinibatch) {
    std::vector<size_t> all;
    for (const std::vector<size_t>& members : scopes) {
      all.insert(all.end(), members.begin(), members.end());
    }
    scopes = {std::move(all)};
  }
  std::vector<double> weights(log_ratios.size());
  for (const std::vector<size_t>& members : scopes) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const size_t member : members) {
      weights[member] = std::min(log_ratios[member].sum, bound);
      largest = std::max(largest, weights[member]);
    }
    for (const size_t member : members) {
      weights[member] = std::isinf(largest) ? 0 : std::exp(weights[member] - largest);
    }
  }
  return weights;
}

}  // namespace

Status ApplyCorrection(const CorrectionOptions& options, Minibatch& batch, MetricList& metrics) {
  PACE_ASSIGN_OR_RETURN(
      Correction correction,
      CorrectRollout(batch.layout(), batch.proximal_logprobs, batch.rollout_logprobs, options));
  batch.importance_weights = std::move(correction.weights);
  batch.mask = std::move(correction.mask);
  MergeMetrics(correction.metrics, metrics);
  return Status::Ok();
}

Result<double> ShapeRewards(const KlPenaltyOptions& options, double coefficient,
                            RatioReference reference, Minibatch& batch, MetricList& metrics) {
  const SequenceLayout layout = batch.layout();
  const std::vector<double>& sampled =
      reference == RatioReference::kRollout ? batch.rollout_logprobs : batch.proximal_logprobs;
  PACE_RETURN_IF_ERROR(
      CheckLength("logprobs", sampled.size(), "tokens", layout.num_tokens(), false));
  PACE_RETURN_IF_ERROR(CheckLength("initial_logprobs", batch.initial_logprobs.size(), "tokens",
                                   layout.num_tokens(), false));
  batch.token_rewards.assign(layout.num_tokens(), 0.0);
  MeanOf over_tokens;
  MeanOf over_sequences;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    MeanOf own;
    size_t last = layout.end(sequence);
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      const double kl = KlPenalty(options, sampled[token], batch.initial_logprobs[token]).value;
      batch.token_rewards[token] = -coefficient * kl;
      own.Add(kl);
      over_tokens.Add(kl);
      last = token;
    }
    if (last == layout.end(sequence)) continue;
    batch.token_rewards[last] += batch.rewards[sequence];
    batch.shaped_rewards[sequence] = batch.rewards[sequence] - coefficient * own.sum();
    over_sequences.Add(own.value());
  }
  MergeMetrics({over_tokens.As("train/kl_reward"), {"train/kl_reward_coef", coefficient, 1}},
               metrics);
  return over_sequences.value();
}

Status EstimateAdvantages(const AdvantageEstimator& estimator, Minibatch& batch,
                          MetricList& metrics) {
  std::vector<double> baselines;
  if (estimator.inputs().baselines) {
    PACE_RETURN_IF_ERROR(CollectBaselines(batch, baselines, metrics));
  }
  PACE_ASSIGN_OR_RETURN(Advantages estimated,
                        estimator.Estimate({.layout = batch.layout(),
                                            .rewards = batch.shaped_rewards,
                                            .token_rewards = batch.token_rewards,
                                            .values = batch.values,
                                            .baselines = baselines}));
  batch.advantages = std::move(estimated.advantages);
  if (!estimator.inputs().values) return Status::Ok();
  batch.returns = std::move(estimated.returns);
  MergeMetrics({ExplainedVariance(batch)}, metrics);
  return Status::Ok();
}

Status ApplyOffPolicyBaseline(const OpobOptions& options, std::span<const double> gradient_norms,
                              std::span<const double> logprobs, Minibatch& batch,
                              MetricList& metrics) {
  const SequenceLayout layout = batch.layout();
  const std::vector<SequenceSum> log_ratios = SumBySequence(
      layout, [&](size_t token) { return logprobs[token] - batch.rollout_logprobs[token]; });
  const std::vector<double> weights = RelativeWeights(options, layout, log_ratios);
  std::vector<double> means;  // of each sequence's advantages
  for (const SequenceSum& one :
       SumBySequence(layout, [&](size_t token) { return batch.advantages[token]; })) {
    means.push_back(one.mean());
  }
  std::vector<int64_t> lengths;
  for (const SequenceSum& one : log_ratios) lengths.push_back(std::max<int64_t>(one.num_tokens, 1));
  OpobOptions unbounded = options;
  unbounded.max_weight.reset();  // done above
  PACE_ASSIGN_OR_RETURN(const OpobResult result,
                        OffPolicyBaseline({.groups = batch.groups,
                                           .rewards = batch.shaped_rewards,
                                           .advantages = means,
                                           .gradient_norms = gradient_norms,
                                           .weights = weights,
                                           .lengths = lengths},
                                          unbounded));
  MeanOf baseline;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    baseline.Add(result.baselines[sequence]);
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      batch.advantages[token] = options.scope == OpobOptions::Scope::kGroup
                                    ? result.coefficients[sequence]
                                    : batch.advantages[token] - result.baselines[sequence];
    }
  }
  MergeMetrics({baseline.As("train/opob_baseline")}, metrics);
  return Status::Ok();
}

}  // namespace pace
