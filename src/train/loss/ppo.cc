// PPO's clipped surrogate, and DAPO's: the same with two clip widths.
//
//   r   = pi_theta / pi_reference, its logarithm bounded by max_log_ratio
//   L_t = max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high))
//   where A < 0:  L_t = min(L_t, -A dual_clip)
//
// Sources: PPO (arXiv 1707.06347), one width; DAPO (2503.14476), a wider upper
// one and token-mean; dual clip (1912.09729). The bound on log r is verl's;
// no paper has it. verl's defaults are 0.2, 0.2 and a dual clip of 3; this
// method's paper trains with 0.2, 0.28 and 10.
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss PpoLoss(const PpoOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const BoundedRatio ratio(batch.logprobs[token] - reference[token], options.max_log_ratio);
      return ClippedTerm(batch.advantages[token], ratio, 1 - options.clip_low,
                         1 + options.clip_high, options.dual_clip);
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), sums.ClipFraction()};
    if (options.dual_clip.has_value()) out.metrics.push_back(sums.ClipFractionLower());
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = LossScope::kToken});
}

}  // namespace pace
