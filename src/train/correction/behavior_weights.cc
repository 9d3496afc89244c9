// The weight of data by who sampled it: pi_proximal / pi_rollout, bounded.
//
// Decoupled PPO multiplies each token's loss by it, without gradient. A token
// or a sequence out of bounds is either left out (mask) or weighs the bound
// (clamp). Bounds apply to a measure of d = log pi_proximal - log pi_rollout:
//
//   ratio  e^d           k1  d           k2  d^2 / 2           k3  e^-d - 1 + d
//
// At sequence level the measure is the sum, mean or maximum over policy tokens
// (of d itself for `ratio`: a product, geometric mean or largest ratio), and
// under `ratio` all tokens of a sequence weigh their geometric mean.
//
// Source: AReaL (arXiv 2505.24298 and its code); tokens above 5 are left out.
// There a non-finite d becomes weight 1; here such a token is left out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "train/correction/corrections.h"

namespace pace {
namespace {

using Options = BehaviorOptions;

double BehaviorMeasure(double log_ratio, Options::Measure measure) {
  switch (measure) {
    case Options::Measure::kRatio:
      return std::exp(log_ratio);
    case Options::Measure::kK1:
      return log_ratio;
    case Options::Measure::kK2:
      return log_ratio * log_ratio / 2;
    case Options::Measure::kK3:
      return std::expm1(-log_ratio) + log_ratio;
  }
  return 0;
}

bool InBounds(double measure, const Options& options) {
  return measure <= options.upper && (!options.lower.has_value() || measure >= *options.lower);
}

double ClampWeight(double weight, const Options& options) {
  return std::clamp(weight, options.lower.value_or(0), options.upper);
}

// What the bounds apply to, and the weight of all tokens where they share one.
struct WholeMeasure {
  bool in_bounds = true;
  std::optional<double> weight = std::nullopt;
};

WholeMeasure MeasureSequence(const SequenceLayout& layout, size_t sequence,
                             std::span<const double> log_ratios, const Options& options) {
  const bool is_ratio = options.measure == Options::Measure::kRatio;
  double sum = 0;
  double sum_of_logs = 0;
  double largest = -std::numeric_limits<double>::infinity();
  double count = 0;
  for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
    if (layout.mask[token] == 0 || !std::isfinite(log_ratios[token])) continue;
    // Ratios multiply: their logarithms add up.
    const double value =
        is_ratio ? log_ratios[token] : BehaviorMeasure(log_ratios[token], options.measure);
    sum += value;
    sum_of_logs += log_ratios[token];
    largest = std::max(largest, value);
    count += 1;
  }
  WholeMeasure result;
  if (count == 0) return result;
  double measure = sum / count;
  if (options.aggregation == Options::Aggregation::kSum) measure = sum;
  if (options.aggregation == Options::Aggregation::kMax) measure = largest;
  result.in_bounds = InBounds(is_ratio ? std::exp(measure) : measure, options);
  if (is_ratio) result.weight = std::exp(sum_of_logs / count);
  return result;
}

}  // namespace

BehaviorWeights WeighBehavior(const SequenceLayout& layout,
                              std::span<const double> proximal_logprobs,
                              std::span<const double> rollout_logprobs,
                              const BehaviorOptions& options) {
  const size_t num_tokens = layout.num_tokens();
  const bool masks = options.action == Options::Action::kMask;
  std::vector<double> log_ratios(num_tokens);
  for (size_t token = 0; token < num_tokens; ++token) {
    log_ratios[token] = proximal_logprobs[token] - rollout_logprobs[token];
  }
  BehaviorWeights result;
  result.weights.assign(num_tokens, 0.0);
  result.kept.assign(num_tokens, 0);
  int64_t num_filtered = 0;
  int64_t num_policy_tokens = 0;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    WholeMeasure whole;
    if (options.level == RatioLevel::kSequence) {
      whole = MeasureSequence(layout, sequence, log_ratios, options);
    }
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      ++num_policy_tokens;
      const double log_ratio = log_ratios[token];
      const double weight = whole.weight.value_or(std::exp(log_ratio));
      bool in_bounds = whole.in_bounds;
      if (options.level == RatioLevel::kToken) {
        // Clamping bounds the weight itself, whatever the measure.
        in_bounds = masks ? InBounds(BehaviorMeasure(log_ratio, options.measure), options)
                          : ClampWeight(weight, options) == weight;
      }
      const bool left_out = !std::isfinite(log_ratio) || (masks && !in_bounds);
      const double used = in_bounds || masks ? weight : ClampWeight(weight, options);
      num_filtered += left_out || used != weight;
      if (left_out) continue;
      result.kept[token] = 1;
      result.weights[token] = used;
    }
  }
  if (num_policy_tokens > 0) {
    result.filtered_fraction =
        static_cast<double>(num_filtered) / static_cast<double>(num_policy_tokens);
  }
  return result;
}

}  // namespace pace
