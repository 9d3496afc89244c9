// M2PO: the ratio as it is, on the tokens inside a second-moment trust region.
//
//   paper      L_t = -M_t r_t A_t                 M_t = 0 on dropped tokens
//   official   L_t = max(-A r, -A clip(r, e^-tau, e^tau))
//
// The region is chosen without gradient (m2po_region.h). No clip otherwise, no
// dual clip, no bound on log r: a bad token whose probability grew keeps its
// full gradient under both rules. The divisor counts dropped tokens too.
//
// Source: arXiv 2510.01161 with GRPO advantages, token-mean, budget 0.04. The
// published code chooses the region within each micro-batch.
#include "train/loss/m2po_region.h"
#include "train/loss/token_term.h"

namespace pace {

PolicyLoss M2poLoss(const M2poOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) -> Status {
    PACE_ASSIGN_OR_RETURN(const M2poRegion region, ChooseRegion(batch, options));
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const BoundedRatio ratio(batch.logprobs[token] - reference[token], kUnbounded);
      if (options.rule == M2poOptions::Rule::kOfficial) {
        return ClippedTerm(batch.advantages[token], ratio, region.lower, region.upper,
                           std::nullopt);
      }
      TokenTerm term{.log_ratio = ratio.log_ratio};
      term.clipped = region.kept[token] == 0;
      if (term.clipped || batch.advantages[token] == 0) return term;
      term.value = -batch.advantages[token] * ratio.value;
      term.slope = term.value;
      return term;
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    const auto num_trust_tokens = static_cast<double>(region.num_trust_tokens);
    out.metrics = {sums.Kl(), sums.ClipFraction(),
                   Metric{"train/m2", region.m2_before, num_trust_tokens},
                   Metric{"train/m2_after", region.m2_after, num_trust_tokens}};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = options.scope});
}

}  // namespace pace
