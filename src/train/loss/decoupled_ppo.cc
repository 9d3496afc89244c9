#include "train/loss/decoupled_ppo.h"

#include <numeric>

#include "train/loss/clip_rules.h"
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

}  // namespace

void DecoupledPpoOptions::Read(OptionReader& reader) {
  reader.Real("clip_low", clip_low);
  reader.Real("clip_high", clip_high);
  reader.OptionalReal("dual_clip", dual_clip);
  reader.Choice("level", {{"token", RatioLevel::kToken}, {"sequence", RatioLevel::kSequence}},
                level);
  reader.Bool("weigh_behavior", weigh_behavior);
  reader.OptionalReal("m2_threshold", m2_threshold);
  behavior.Read(reader);
}

Status DecoupledPpoOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckClipWidths("decoupled_ppo", clip_low, clip_high));
  PACE_RETURN_IF_ERROR(CheckDualClip("decoupled_ppo", dual_clip));
  if (m2_threshold.has_value()) {
    PACE_RETURN_IF_ERROR(CheckPositive("decoupled_ppo", "m2_threshold", *m2_threshold));
  }
  return behavior.Validate().At("decoupled_ppo");
}

Status DecoupledPpoLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) const {
  TokenBatch used = batch;
  ReductionWeights used_weights = weights;
  std::vector<uint8_t> kept;
  if (options_.m2_threshold.has_value()) {
    kept = ArealKeptTokens(batch.layout, batch.rollout_logprobs, batch.proximal_logprobs,
                           *options_.m2_threshold);
    used_weights = Redistribute(weights, batch.layout, kept);
    used.layout.mask = kept;
  }
  BehaviorWeights behavior;
  if (options_.weigh_behavior) {
    behavior = WeighBehavior(used.layout, batch.proximal_logprobs, batch.rollout_logprobs,
                             options_.behavior);
  } else {
    behavior.weights.assign(batch.num_tokens(), 1.0);
    behavior.kept.assign(used.layout.mask.begin(), used.layout.mask.end());
  }
  if (options_.level == RatioLevel::kToken) {
    ComputeTokens(used, behavior, used_weights, out);
  } else {
    ComputeSequences(used, behavior, used_weights, out);
  }
  return Status::Ok();
}

void DecoupledPpoLoss::ComputeTokens(const TokenBatch& batch, const BehaviorWeights& behavior,
                                     const ReductionWeights& weights, LossResult& out) const {
  MeanOf ratios;
  const auto term_of = [&](size_t token) {
    const BoundedRatio ratio(batch.logprobs[token] - batch.proximal_logprobs[token], kUnbounded);
    TokenTerm term = ClippedTerm(batch.advantages[token], ratio, 1 - options_.clip_low,
                                 1 + options_.clip_high, options_.dual_clip);
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

void DecoupledPpoLoss::ComputeSequences(const TokenBatch& batch, const BehaviorWeights& behavior,
                                        const ReductionWeights& weights, LossResult& out) const {
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
    const TokenTerm term = ClippedTerm(advantage.value(), ratio, 1 - options_.clip_low,
                                       1 + options_.clip_high, options_.dual_clip);
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

}  // namespace pace
