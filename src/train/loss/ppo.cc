#include "train/loss/ppo.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {

void PpoOptions::Read(OptionReader& reader) {
  reader.Real("clip_low", clip_low);
  reader.Real("clip_high", clip_high);
  reader.OptionalReal("dual_clip", dual_clip);
  reader.Real("max_log_ratio", max_log_ratio);
}

Status PpoOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckClipWidths("ppo", clip_low, clip_high));
  PACE_RETURN_IF_ERROR(CheckDualClip("ppo", dual_clip));
  return CheckPositive("ppo", "max_log_ratio", max_log_ratio);
}

PpoOptions DapoOptions() {
  return {.clip_low = 0.2, .clip_high = 0.28};
}

Status PpoLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                        LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const BoundedRatio ratio(batch.logprobs[token] - reference[token], options_.max_log_ratio);
    return ClippedTerm(batch.advantages[token], ratio, 1 - options_.clip_low,
                       1 + options_.clip_high, options_.dual_clip);
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction()};
  if (options_.dual_clip.has_value()) out.metrics.push_back(sums.ClipFractionLower());
  return Status::Ok();
}

}  // namespace pace
