#include "train/correction/ess_learning_rate.h"

#include <algorithm>
#include <cmath>

#include "train/correction/effective_sample_size.h"
#include "train/sequence_sum.h"

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

void EssLearningRateOptions::Read(OptionReader& reader) {
  reader.Choice("rule", {{"sqrt", Rule::kSqrt}, {"linear", Rule::kLinear}}, rule);
  reader.Real("base_ratio", base_ratio);
  reader.OptionalReal("max_weight", max_weight);
  reader.Bool("bounded", bounded);
  reader.Bool("compat", compat);
}

Status EssLearningRateOptions::Validate() const {
  if (!(base_ratio > 0)) {
    return InvalidArgument("ess.base_ratio = ", base_ratio, ": must be positive");
  }
  if (max_weight.has_value() && !(*max_weight > 0)) {
    return InvalidArgument("ess.max_weight = ", *max_weight, ": must be positive");
  }
  return Status::Ok();
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
