// TOPR: REINFORCE on successes, tapered importance sampling on the rest.
//
//   reward > 0:   L_t = -positive_weight A log pi_theta
//   otherwise:    L_t = -negative_weight sg(clip(rho, 0, 1)) A log pi_theta
//
// Successes are learned as in supervised training whoever sampled them;
// failures are forgotten only as far as the policy still produces them.
// Source: arXiv 2503.14286. There rho is the ratio of the whole sequence
// (`level: sequence`); ROLL's code takes the token's own (`level: token`).
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss ToprLoss(const ToprOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const auto log_ratio_of = [&](size_t token) { return batch.frozen(token) - reference[token]; };
    const std::vector<SequenceSum> log_ratios = SumBySequence(batch.layout, log_ratio_of);
    const std::vector<size_t> sequences = SequenceOfTokens(batch.layout);
    const auto term_of = [&](size_t token) {
      const size_t sequence = sequences[token];
      const double own = log_ratio_of(token);
      const double log_ratio = options.level == RatioLevel::kToken ? own : log_ratios[sequence].sum;
      const bool positive = batch.rewards[sequence] > 0;
      const double weight = positive ? options.positive_weight
                                     : options.negative_weight * std::exp(std::min(log_ratio, 0.0));
      const double slope = -weight * batch.advantages[token];
      return TokenTerm{.value = slope * batch.logprobs[token],
                       .slope = slope,
                       .log_ratio = own,
                       .clipped = !positive && log_ratio > 0};
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), sums.ClipFraction()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.inputs = {.rewards = true},
                              .paper_reduction = ReductionMode::kSequenceMeanTokenSum});
}

}  // namespace pace
