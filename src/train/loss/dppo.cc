#include "train/loss/dppo.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {
namespace {

// Keeps the logarithm of a vanishing rest finite; verl's constant.
constexpr double kTinyRest = 1e-8;

}  // namespace

void DppoOptions::Read(OptionReader& reader) {
  reader.Choice("divergence", {{"tv", Divergence::kTotalVariation}, {"kl", Divergence::kKl}},
                divergence);
  reader.Real("divergence_low", divergence_low);
  reader.Real("divergence_high", divergence_high);
  reader.Real("max_ratio", max_ratio);
  reader.Real("max_log_ratio", max_log_ratio);
}

Status DppoOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckNotNegative("dppo", "divergence_low", divergence_low));
  PACE_RETURN_IF_ERROR(CheckNotNegative("dppo", "divergence_high", divergence_high));
  PACE_RETURN_IF_ERROR(CheckPositive("dppo", "max_ratio", max_ratio));
  return CheckPositive("dppo", "max_log_ratio", max_log_ratio);
}

bool DppoLoss::Inside(double logprob, double reference, double advantage) const {
  const double p = std::exp(logprob);
  const double q = std::exp(reference);
  if (options_.divergence == DppoOptions::Divergence::kTotalVariation) {
    return advantage > 0 ? p - q <= options_.divergence_high : p - q >= -options_.divergence_low;
  }
  const double kl =
      q * (reference - logprob) + (1 - q) * std::log((1.0 - q + kTinyRest) / (1.0 - p + kTinyRest));
  return advantage > 0 ? kl <= options_.divergence_high || p <= q
                       : kl <= options_.divergence_low || p >= q;
}

Status DppoLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                         LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const double frozen = batch.frozen(token);
    const BoundedRatio ratio(frozen - reference[token], options_.max_log_ratio);
    const bool inside = Inside(frozen, reference[token], batch.advantages[token]);
    const double weight = inside ? std::min(ratio.value, options_.max_ratio) : 0;
    const double slope = -weight * batch.advantages[token];
    return TokenTerm{.value = slope * batch.logprobs[token],
                     .slope = slope,
                     .log_ratio = ratio.log_ratio,
                     .clipped = !inside,
                     .clipped_lower = inside && ratio.value > options_.max_ratio};
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction(), sums.ClipFractionLower()};
  return Status::Ok();
}

}  // namespace pace
