// REINFORCE: the plain policy gradient, on-policy or importance-weighted.
//
//   L_t = -A log pi_theta
//
// With batch.importance_weights (train/correction) it is the policy gradient
// corrected for the policy that sampled, w A grad log pi. Reduced by
// seq-mean-token-sum. GPG (arXiv 2504.02546) uses this loss, token-mean, with
// an advantage of its own; it stands in the list as `gpg`.
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss ReinforceLoss(ReductionMode paper_reduction) {
  const auto compute = [](const TokenBatch& batch, const ReductionWeights& weights,
                          LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const double slope = -batch.advantages[token];
      const double log_ratio = reference.empty() ? 0 : batch.frozen(token) - reference[token];
      return TokenTerm{
          .value = slope * batch.logprobs[token], .slope = slope, .log_ratio = log_ratio};
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    if (!reference.empty()) out.metrics = {sums.Kl()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.inputs = {.reference = false},
                              .scope = LossScope::kToken,
                              .paper_reduction = paper_reduction});
}

}  // namespace pace
