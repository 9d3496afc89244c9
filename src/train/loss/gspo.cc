// GSPO: the clipped surrogate with one ratio per sequence.
//
//   s_i     = exp(mean_t (log pi_theta - log pi_reference))
//   s_{i,t} = sg(s_i) pi_theta(y_t) / sg(pi_theta(y_t))
//   L_t     = max(-A s_{i,t}, -A clip(s_{i,t}, 1 - clip_low, 1 + clip_high))
//
// Source: arXiv 2507.18071, its token form, whose gradient is that of the
// sequence form where the advantage is the same for all tokens; reduced by
// seq-mean-token-mean. verl bounds log s from above by 10, which no paper has.
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss GspoLoss(const GspoOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const std::vector<SequenceSum> log_ratios = SumBySequence(
        batch.layout, [&](size_t token) { return batch.frozen(token) - reference[token]; });
    const std::vector<size_t> sequences = SequenceOfTokens(batch.layout);
    const auto term_of = [&](size_t token) {
      // Only the second part has a gradient; its value is 0.
      const double log_ratio =
          log_ratios[sequences[token]].mean() + (batch.logprobs[token] - batch.frozen(token));
      const BoundedRatio ratio(log_ratio, -kUnbounded, options.max_log_ratio);
      TokenTerm term = ClippedTerm(batch.advantages[token], ratio, 1 - options.clip_low,
                                   1 + options.clip_high, std::nullopt);
      term.log_ratio = batch.frozen(token) - reference[token];
      return term;
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), sums.ClipFraction()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.paper_reduction = ReductionMode::kSequenceMeanTokenMean});
}

}  // namespace pace
