// Decoupled PPO: a clip around the proximal policy, a weight for who sampled.
//
//   r   = pi_theta / pi_proximal          u = sg(pi_proximal / pi_rollout)
//   L_t = u min(max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)), |A| dual_clip)
//
// pi_proximal is the trainer's policy just before the step's updates: recompute
// it by a forward pass, or estimate it (train/correction/proximal.cc); either
// way it comes as batch.proximal_logprobs. Tokens that u leaves out
// (train/correction/behavior_weights.cc) lose their loss but stay in the divisor.
//
// With `level: sequence` r is the geometric mean of the kept tokens' ratios,
// with its full gradient, and A their mean advantage: AReaL's form of GSPO.
// `m2_threshold` first drops the tokens of largest (log u)^2 and divides by the
// rest: AReaL's form of M2PO (m2po_region.h).
//
// Source: arXiv 2505.24298, token-mean, 0.2, no dual clip.
#include <numeric>

#include "train/correction/corrections.h"
#include "train/loss/m2po_region.h"
#include "train/loss/token_term.h"

namespace pace {
namespace {

// Weights that share what dropped tokens had among the kept ones.
ReductionWeights Redistribute(const ReductionWeights& weights, const SequenceLayout& layout,
                              const std::vector<uint8_t>& kept) {
  double all = 0;
  double rest = 0;
  for (size_t token = 0; token < kept.size(); ++token) {
    if (layout.mask[token] == 0) continue;
    all += weights.token[token];
    if (kept[token] != 0) rest += weights.token[token];
  }
  ReductionWeights redistributed = weights;
  for (size_t token = 0; token < kept.size(); ++token) {
    const double factor = kept[token] != 0 && rest > 0 ? all / rest : 0;
    redistributed.token[token] *= factor;
  }
  return redistributed;
}

Metric FilteredMetric(const BehaviorWeights& behavior, const TokenSums& sums) {
  return {"train/filtered_fraction", behavior.filtered_fraction, sums.clipped.weight()};
}

void ComputeTokens(const TokenBatch& batch, const BehaviorWeights& behavior,
                   const ReductionWeights& weights, const DecoupledPpoOptions& options,
                   LossResult& out) {
  MeanOf ratios;
  const auto term_of = [&](size_t token) {
    const BoundedRatio ratio(batch.logprobs[token] - batch.proximal_logprobs[token], kUnbounded);
    TokenTerm term = ClippedTerm(batch.advantages[token], ratio, 1 - options.clip_low,
                                 1 + options.clip_high, options.dual_clip);
    if (behavior.kept[token] != 0) ratios.Add(ratio.value);
    // A token left out weighs nothing, however large its ratio.
    const double weight = behavior.kept[token] != 0 ? behavior.weights[token] : 0;
    term.value = weight > 0 ? weight * term.value : 0;
    term.slope = weight > 0 ? weight * term.slope : 0;
    return term;
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction(), sums.ClipFractionLower(), ratios.As("train/ratio"),
                 FilteredMetric(behavior, sums)};
}

void ComputeSequences(const TokenBatch& batch, const BehaviorWeights& behavior,
                      const ReductionWeights& weights, const DecoupledPpoOptions& options,
                      LossResult& out) {
  const SequenceLayout& layout = batch.layout;
  TokenSums sums;
  MeanOf ratios;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    MeanOf log_ratio;
    MeanOf advantage;
    double weight = 0;
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (!batch.is_policy_token(token) || behavior.kept[token] == 0) continue;
      log_ratio.Add(batch.logprobs[token] - batch.proximal_logprobs[token]);
      advantage.Add(batch.advantages[token]);
      weight += weights.token[token] * batch.importance_weight(token) * behavior.weights[token];
    }
    const BoundedRatio ratio(log_ratio.value(), kUnbounded);
    const TokenTerm term = ClippedTerm(advantage.value(), ratio, 1 - options.clip_low,
                                       1 + options.clip_high, options.dual_clip);
    out.loss += weight * term.value;
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (!batch.is_policy_token(token)) continue;
      const bool counts = behavior.kept[token] != 0;
      TokenTerm own{.log_ratio = batch.logprobs[token] - batch.proximal_logprobs[token]};
      if (counts) {
        ratios.Add(ratio.value);
        out.gradient[token] = weight * term.slope / log_ratio.weight();
        own.clipped = term.clipped;
        own.clipped_lower = term.clipped_lower;
      }
      sums.Add(own);
    }
  }
  out.metrics = {sums.Kl(), sums.ClipFraction(), sums.ClipFractionLower(), ratios.As("train/ratio"),
                 FilteredMetric(behavior, sums)};
}

}  // namespace

PolicyLoss DecoupledPpoLoss(const DecoupledPpoOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    TokenBatch used = batch;
    ReductionWeights used_weights = weights;
    std::vector<uint8_t> kept;
    if (options.m2_threshold.has_value()) {
      kept = ArealKeptTokens(batch.layout, batch.rollout_logprobs, batch.proximal_logprobs,
                             *options.m2_threshold);
      used_weights = Redistribute(weights, batch.layout, kept);
      used.layout.mask = kept;
    }
    BehaviorWeights behavior;
    if (options.weigh_behavior) {
      behavior = WeighBehavior(used.layout, batch.proximal_logprobs, batch.rollout_logprobs,
                               options.behavior);
    } else {
      behavior.weights.assign(batch.num_tokens(), 1.0);
      behavior.kept.assign(used.layout.mask.begin(), used.layout.mask.end());
    }
    if (options.level == RatioLevel::kToken) {
      ComputeTokens(used, behavior, used_weights, options, out);
    } else {
      ComputeSequences(used, behavior, used_weights, options, out);
    }
    return Status::Ok();
  };
  return PolicyLoss(compute, {.inputs = {.reference = false, .rollout = true, .proximal = true},
                              .scope = options.m2_threshold.has_value() ? LossScope::kMinibatch
                                                                        : LossScope::kSequence});
}

}  // namespace pace
