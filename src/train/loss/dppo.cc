// DPPO: a trust region on probabilities, not on ratios.
//
//   L_t = -sg(min(r, max_ratio)) A log pi_theta   inside the region, else 0
//
// With p = pi_theta and q = pi_reference of the token (all others taken as one
// other outcome), a token leaves the region when its update would take it
// further away:
//
//   tv   A > 0: p - q > divergence_high        otherwise: q - p > divergence_low
//   kl   KL(q || p) of the two outcomes above divergence_high (A > 0 and
//        p > q) or divergence_low (otherwise, p < q)
//
// A rare token may double its probability; a common one may not, although
// their ratios are equal. Source: arXiv 2602.04879; verl's constants.
#include "train/loss/token_term.h"

namespace pace {
namespace {

// Keeps the logarithm of a vanishing rest finite; verl's constant.
constexpr double kTinyRest = 1e-8;

// Whether the token may still be updated.
bool Inside(double logprob, double reference, double advantage, const DppoOptions& options) {
  const double p = std::exp(logprob);
  const double q = std::exp(reference);
  if (options.divergence == DppoOptions::Divergence::kTotalVariation) {
    return advantage > 0 ? p - q <= options.divergence_high : p - q >= -options.divergence_low;
  }
  const double kl =
      q * (reference - logprob) + (1 - q) * std::log((1.0 - q + kTinyRest) / (1.0 - p + kTinyRest));
  return advantage > 0 ? kl <= options.divergence_high || p <= q
                       : kl <= options.divergence_low || p >= q;
}

}  // namespace

PolicyLoss DppoLoss(const DppoOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const double frozen = batch.frozen(token);
      const BoundedRatio ratio(frozen - reference[token], options.max_log_ratio);
      const bool inside = Inside(frozen, reference[token], batch.advantages[token], options);
      const double weight = inside ? std::min(ratio.value, options.max_ratio) : 0;
      const double slope = -weight * batch.advantages[token];
      return TokenTerm{.value = slope * batch.logprobs[token],
                       .slope = slope,
                       .log_ratio = ratio.log_ratio,
                       .clipped = !inside,
                       .clipped_lower = inside && ratio.value > options.max_ratio};
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), sums.ClipFraction(), sums.ClipFractionLower()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = LossScope::kToken});
}

}  // namespace pace
