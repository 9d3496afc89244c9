// DRO: REINFORCE with a quadratic penalty on the log-ratio.
//
//   L_t = -(A log pi_theta - beta / 2 (log pi_theta - log pi_reference)^2)
//
// Source: arXiv 2405.19107, whose value function stands in the advantage here,
// as in verl.
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss DroLoss(const DroOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const double log_ratio = batch.logprobs[token] - reference[token];
      const double advantage = batch.advantages[token];
      return TokenTerm{
          .value = -advantage * batch.logprobs[token] + options.beta / 2 * log_ratio * log_ratio,
          .slope = -advantage + options.beta * log_ratio,
          .log_ratio = log_ratio};
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = LossScope::kToken});
}

}  // namespace pace
