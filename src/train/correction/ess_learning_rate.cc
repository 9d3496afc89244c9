// VCPO's learning rate: the more the weights of a minibatch differ, the
// smaller the update.
//
//   w_i = exp(sum_t (log pi_train - log pi_rollout)) of sequence i
//   rho = (sum w)^2 / (B sum w^2)                     over the whole minibatch
//   lr  = base lr * rule(min(1, rho / base_ratio)),   rule: sqrt or linear
//
// for one update. A sequence without policy tokens weighs 1. Source: arXiv
// 2602.17616 and mit-han-lab/vcpo; base_ratio 1, sqrt, weights as they are
// (`max_weight` bounds them where `bounded` asks for it).
//
// The published code forms weights in float32 and adds 1e-8 to sum w^2: an
// overflow makes rho NaN and then gives the *full* rate, and equal tiny weights
// stop learning. Here rho is computed from logarithms; `compat` repeats theirs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "train/correction/corrections.h"

namespace pace {
namespace {

// (sum w)^2 / (B (sum w^2 + 1e-8)) of weights that went through float32.
double PublishedRatio(const std::vector<double>& log_weights,
                      const std::optional<double>& max_weight) {
  double sum = 0;
  double sum_of_squares = 0;
  for (const double log_weight : log_weights) {
    auto weight = static_cast<double>(std::exp(static_cast<float>(log_weight)));
    if (max_weight.has_value()) weight = std::min(weight, *max_weight);
    sum += weight;
    sum_of_squares += weight * weight;
  }
  return sum * sum / (sum_of_squares + 1e-8) / static_cast<double>(log_weights.size());
}

double Ratio(const std::vector<double>& log_weights, const std::optional<double>& max_weight,
             bool compat) {
  if (log_weights.empty()) return 1;
  if (compat) return PublishedRatio(log_weights, max_weight);
  if (!max_weight.has_value()) return EffectiveSampleRatio(log_weights);
  std::vector<double> bounded = log_weights;
  for (double& log_weight : bounded) log_weight = std::min(log_weight, std::log(*max_weight));
  return EffectiveSampleRatio(bounded);
}

}  // namespace

double EffectiveSampleRatio(std::span<const double> log_weights) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double log_weight : log_weights) largest = std::max(largest, log_weight);
  if (std::isinf(largest)) return 0;
  double sum = 0;
  double sum_of_squares = 0;
  for (const double log_weight : log_weights) {
    const double weight = std::exp(log_weight - largest);
    sum += weight;
    sum_of_squares += weight * weight;
  }
  return sum * sum / (sum_of_squares * static_cast<double>(log_weights.size()));
}

Result<EssLearningRate> ScaleLearningRate(const SequenceLayout& layout,
                                          std::span<const double> train_logprobs,
                                          std::span<const double> rollout_logprobs,
                                          const EssLearningRateOptions& options) {
  PACE_RETURN_IF_ERROR(layout.Validate());
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(
      CheckLength("train_logprobs", train_logprobs.size(), "tokens", layout.num_tokens(), false));
  PACE_RETURN_IF_ERROR(CheckLength("rollout_logprobs", rollout_logprobs.size(), "tokens",
                                   layout.num_tokens(), false));
  EssLearningRate out;
  const std::vector<SequenceSum> sums = SumBySequence(
      layout, [&](size_t token) { return train_logprobs[token] - rollout_logprobs[token]; });
  for (const SequenceSum& one : sums) out.log_weights.push_back(one.sum);
  out.ess_ratio = Ratio(out.log_weights, std::nullopt, options.compat);
  out.bounded_ess_ratio = Ratio(out.log_weights, options.max_weight, options.compat);
  const double used = options.bounded ? out.bounded_ess_ratio : out.ess_ratio;
  // A NaN, which only `compat` can have, leaves the rate whole.
  const double scale = used / options.base_ratio < 1 ? used / options.base_ratio : 1;
  out.scale = options.rule == EssLearningRateOptions::Rule::kSqrt ? std::sqrt(scale) : scale;
  return out;
}

}  // namespace pace
