// SAPO: a sigmoid gate in place of the clip.
//
//   tau = tau_positive where A > 0, else tau_negative
//   L_t = -A (4 / tau) sigmoid(tau (r - 1))
//
// At r = 1 the slope is that of REINFORCE; it fades smoothly as the ratio
// leaves 1, faster for bad tokens. Source: arXiv 2511.20347, 1.0 and 1.05,
// seq-mean-token-mean. verl bounds |log r| by 20, AReaL does not (and takes a
// token mean).
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss SapoLoss(const SapoOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const BoundedRatio ratio(batch.logprobs[token] - reference[token], options.max_log_ratio);
      const double advantage = batch.advantages[token];
      const double tau = advantage > 0 ? options.tau_positive : options.tau_negative;
      const double gate = 1 / (1 + std::exp(-tau * (ratio.value - 1)));
      return TokenTerm{.value = -advantage * gate * 4 / tau,
                       .slope = -advantage * 4 * gate * (1 - gate) * ratio.slope,
                       .log_ratio = ratio.log_ratio};
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = LossScope::kToken,
                              .paper_reduction = ReductionMode::kSequenceMeanTokenMean});
}

}  // namespace pace
