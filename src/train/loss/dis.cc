// DIS, SAO's direct importance sampling: the ratio inside a band, nothing outside.
//
//   r   = pi_theta / pi_rollout: no policy in between
//   L_t = -A r   where 1 - band_low < r < 1 + band_high,   else 0
//
// Source: SAO (arXiv 2607.07508), which has no official code: 0.3 and 5.0 for
// mathematics, 0.8 and 3.0 for coding. IcePop is the same band on a weight
// without gradient; as a loss on -A r the gradients agree.
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss DisLoss(const DisOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const auto term_of = [&](size_t token) {
      TokenTerm term{.log_ratio = batch.logprobs[token] - batch.rollout_logprobs[token]};
      const double ratio = std::exp(term.log_ratio);
      // Which side of the band a token is on has no gradient.
      const double frozen_ratio = std::exp(batch.frozen(token) - batch.rollout_logprobs[token]);
      term.clipped = frozen_ratio <= 1 - options.band_low || frozen_ratio >= 1 + options.band_high;
      if (term.clipped) return term;
      term.value = -batch.advantages[token] * ratio;
      term.slope = term.value;
      return term;
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), sums.ClipFraction()};
    return Status::Ok();
  };
  return PolicyLoss(compute,
                    {.inputs = {.reference = false, .rollout = true}, .scope = LossScope::kToken});
}

}  // namespace pace
