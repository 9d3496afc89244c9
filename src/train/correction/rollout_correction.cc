// Corrections for data that another policy sampled: weights, and rejection.
//
// d = log pi_train - log pi_rollout, the train policy recomputed (or the one
// being trained, where the rollout's record is the ratio's reference).
//
// Importance weights, without gradient, multiply a token's loss:
//   TIS      w = min(e^d, upper)                 truncated importance sampling
//   IcePop   w = e^d inside [lower, upper], else 0
// per token, or per sequence with d summed over it. |d| (or its sum) is bounded
// by 20 first. `normalize` divides by the mean weight.
//
// Rejection takes tokens or sequences out of the mask; several criteria must
// all be met. With k1 = -d, k2 = d^2 / 2, k3 = e^d - 1 - d (|d| <= 20):
//   token_*                                 the token's own
//   seq_sum_*, seq_mean_*, seq_max_*        over the sequence
//   k1 must lie in [ln lower, ln upper]: bounds on pi_rollout / pi_train.
//   k2, k3 must be at most upper.
//
// Source: verl (rollout_corr_helper); TIS fengyao.notion.site/off-policy-rl,
// cap 2; IcePop ringtech.notion.site/icepop, 0.5 and 5. verl documents the
// bounds of k1 for pi_train / pi_rollout, the inverse of what its code does;
// `k1_bounds: train_over_rollout` does what is documented.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "train/correction/corrections.h"

namespace pace {
namespace {

// Bound of a log-ratio before it is exponentiated: e^20 is 485 million.
constexpr double kMaxLogRatio = 20;

double Bounded(double log_ratio) {
  return std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio);
}

double MeasureOf(double log_ratio, RejectionCriterion::Measure measure) {
  const double d = Bounded(log_ratio);
  switch (measure) {
    case RejectionCriterion::Measure::kK1:
      return -d;
    case RejectionCriterion::Measure::kK2:
      return d * d / 2;
    case RejectionCriterion::Measure::kK3:
      return std::expm1(d) - d;
  }
  return 0;
}

// d of each token; 0 where masked, so that what stands there is never read.
std::vector<double> LogRatios(const SequenceLayout& layout, std::span<const double> train,
                              std::span<const double> rollout) {
  std::vector<double> log_ratios(layout.num_tokens(), 0.0);
  for (size_t token = 0; token < log_ratios.size(); ++token) {
    if (layout.mask[token] != 0) log_ratios[token] = train[token] - rollout[token];
  }
  return log_ratios;
}

double MeanWeight(const SequenceLayout& layout, const std::vector<double>& weights,
                  RatioLevel level) {
  MeanOf mean;
  const std::vector<SequenceSum> sums =
      SumBySequence(layout, [&](size_t token) { return weights[token]; });
  for (const SequenceSum& one : sums) {
    if (level == RatioLevel::kSequence && one.num_tokens > 0) mean.Add(one.mean());
  }
  for (size_t token = 0; token < weights.size(); ++token) {
    if (level == RatioLevel::kToken && layout.mask[token] != 0) mean.Add(weights[token]);
  }
  return mean.value();
}

Status AddImportance(const SequenceLayout& layout, const std::vector<double>& log_ratios,
                     const ImportanceOptions& options, bool compat, Correction& out) {
  const std::vector<SequenceSum> sums =
      SumBySequence(layout, [&](size_t token) { return log_ratios[token]; });
  const std::vector<size_t> sequences = SequenceOfTokens(layout);
  const double lower = options.lower.value_or(1 / options.upper);
  out.weights.assign(layout.num_tokens(), 0.0);
  std::vector<double> log_weights;
  MeanOf mean;
  MeanOf high;
  MeanOf low;
  for (size_t token = 0; token < out.weights.size(); ++token) {
    if (layout.mask[token] == 0) continue;
    const bool own = options.level == RatioLevel::kToken;
    const double raw = std::exp(Bounded(own ? log_ratios[token] : sums[sequences[token]].sum));
    high.Add(raw > options.upper ? 1 : 0);
    low.Add(raw < lower ? 1 : 0);
    double weight = std::min(raw, options.upper);
    if (options.lower.has_value() && (raw < lower || raw > options.upper)) weight = 0;
    out.weights[token] = weight;
    mean.Add(weight);
    log_weights.push_back(std::log(weight));
  }
  const double ess = EffectiveSampleRatio(log_weights);
  if (compat && ess == 0) {
    return InvalidArgument("importance weights: all are 0, so verl has no effective sample size");
  }
  out.metrics.push_back({"train/ess", ess, mean.weight()});
  out.metrics.push_back(mean.As("train/is_mean"));
  out.metrics.push_back(high.As("train/is_fraction_high"));
  out.metrics.push_back(low.As("train/is_fraction_low"));
  if (options.lower.has_value()) {
    out.metrics.push_back({"train/is_out_of_band", high.value() + low.value(), mean.weight()});
  }
  if (options.normalize) {
    const double normalizer = MeanWeight(layout, out.weights, options.level);
    out.metrics.push_back({"train/is_normalizer", normalizer, mean.weight()});
    if (normalizer > 0) {
      for (double& weight : out.weights) weight /= normalizer;
    }
  }
  return Status::Ok();
}

double SequenceMeasure(const SequenceLayout& layout, size_t sequence,
                       const std::vector<double>& log_ratios, const RejectionCriterion& criterion) {
  double sum = 0;
  double largest = -std::numeric_limits<double>::infinity();
  double count = 0;
  for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
    if (layout.mask[token] == 0) continue;
    const double measure = MeasureOf(log_ratios[token], criterion.measure);
    sum += measure;
    largest = std::max(largest, measure);
    count += 1;
  }
  if (count == 0) return 0;
  if (criterion.level == RejectionCriterion::Level::kSequenceMax) return largest;
  return criterion.level == RejectionCriterion::Level::kSequenceMean ? sum / count : sum;
}

bool Accepts(const RejectionCriterion& criterion, CorrectionOptions::K1Bounds k1_bounds,
             double measure) {
  if (criterion.measure != RejectionCriterion::Measure::kK1) return measure <= criterion.upper;
  if (k1_bounds == CorrectionOptions::K1Bounds::kTrainOverRollout) measure = -measure;
  return measure >= std::log(criterion.lower.value_or(1 / criterion.upper)) &&
         measure <= std::log(criterion.upper);
}

// How much of `mask` is gone in `left`: over tokens, over sequences.
void AddRejected(const SequenceLayout& layout, const std::vector<uint8_t>& left,
                 const std::string& name, MetricList& metrics) {
  MeanOf tokens;
  MeanOf sequences;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    bool any = false;
    bool touched = false;
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      any = true;
      touched = touched || left[token] == 0;
      tokens.Add(left[token] == 0 ? 1 : 0);
    }
    if (any) sequences.Add(touched ? 1 : 0);
  }
  metrics.push_back(tokens.As(name));
  metrics.push_back(sequences.As(name + "_seq"));
}

void Reject(const SequenceLayout& layout, const std::vector<double>& log_ratios,
            const CorrectionOptions& options, Correction& out) {
  for (const RejectionCriterion& criterion : options.rejection) {
    std::vector<uint8_t> accepted(layout.num_tokens(), 0);
    for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
      const bool per_token = criterion.level == RejectionCriterion::Level::kToken;
      const double whole = per_token ? 0 : SequenceMeasure(layout, sequence, log_ratios, criterion);
      for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
        const double measure = per_token ? MeasureOf(log_ratios[token], criterion.measure) : whole;
        accepted[token] = Accepts(criterion, options.k1_bounds, measure);
        if (accepted[token] == 0) out.mask[token] = 0;
      }
    }
    AddRejected(layout, accepted, "train/rejected_" + NameOf(criterion), out.metrics);
  }
  if (!options.rejection.empty()) AddRejected(layout, out.mask, "train/rejected", out.metrics);
}

void AddMismatch(const SequenceLayout& layout, const std::vector<double>& log_ratios,
                 MetricList& metrics) {
  MeanOf kl;
  MeanOf k3;
  MeanOf chi2;
  for (size_t token = 0; token < log_ratios.size(); ++token) {
    if (layout.mask[token] == 0) continue;
    const double d = log_ratios[token];
    kl.Add(-d);
    k3.Add(std::expm1(d) - d);
    chi2.Add(std::expm1(2 * Bounded(d)));
  }
  metrics.push_back(kl.As("train/mismatch_kl"));
  metrics.push_back(k3.As("train/mismatch_k3"));
  metrics.push_back(chi2.As("train/mismatch_chi2"));
}

}  // namespace

Result<Correction> CorrectRollout(const SequenceLayout& layout,
                                  std::span<const double> train_logprobs,
                                  std::span<const double> rollout_logprobs,
                                  const CorrectionOptions& options) {
  PACE_RETURN_IF_ERROR(layout.Validate());
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(
      CheckLength("train_logprobs", train_logprobs.size(), "tokens", layout.num_tokens(), false));
  PACE_RETURN_IF_ERROR(CheckLength("rollout_logprobs", rollout_logprobs.size(), "tokens",
                                   layout.num_tokens(), false));
  if (options.compat && layout.num_policy_tokens() == 0) {
    return InvalidArgument("mask: verl needs at least one policy token");
  }
  Correction out;
  out.mask.assign(layout.mask.begin(), layout.mask.end());
  const std::vector<double> log_ratios = LogRatios(layout, train_logprobs, rollout_logprobs);
  if (options.importance.has_value()) {
    PACE_RETURN_IF_ERROR(
        AddImportance(layout, log_ratios, *options.importance, options.compat, out));
  }
  Reject(layout, log_ratios, options, out);
  AddMismatch(layout, log_ratios, out.metrics);
  return out;
}

}  // namespace pace
