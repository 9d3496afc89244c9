// CISPO: REINFORCE weighted by the clipped ratio, which has no gradient.
//
//   L_t = -sg(clip(r, 1 - clip_low, 1 + clip_high)) A log pi_theta
//
// Every token keeps a gradient, however far its ratio went; only its weight is
// bounded. Source: MiniMax-M1 (arXiv 2506.13585), no lower bound and token-mean;
// widths are not given there. verl: 10 (none) and 0.2; AReaL: 1 (none) and 4.
// verl bounds |log r| by 20.
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss CispoLoss(const CispoOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const BoundedRatio ratio(batch.frozen(token) - reference[token], options.max_log_ratio);
      const double weight = std::clamp(ratio.value, 1 - options.clip_low, 1 + options.clip_high);
      const double slope = -weight * batch.advantages[token];
      return TokenTerm{.value = slope * batch.logprobs[token],
                       .slope = slope,
                       .log_ratio = ratio.log_ratio,
                       .clipped = weight != ratio.value};
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), sums.ClipFraction()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = LossScope::kToken});
}

}  // namespace pace
