#include "train/math/kl_penalty.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pace {
namespace {

// A bound of magnitude; beyond it the slope is 0.
KlTerm Bounded(KlTerm term, double bound) {
  if (std::abs(term.value) <= bound) return term;
  return {.value = std::clamp(term.value, -bound, bound), .slope = 0};
}

KlTerm K3(double x, const KlPenaltyOptions& options) {
  const double bound = options.max_log_ratio.value_or(std::numeric_limits<double>::infinity());
  const double inside = std::clamp(x, -bound, bound);
  const double slope = inside == x ? -std::expm1(-inside) : 0;
  return {.value = std::expm1(-inside) + inside, .slope = slope};
}

}  // namespace

KlTerm KlPenalty(const KlPenaltyOptions& options, double logprob, double reference_logprob) {
  const double x = logprob - reference_logprob;
  KlTerm term;
  switch (options.estimator) {
    case KlEstimator::kK1:
      term = {.value = x, .slope = 1};
      break;
    case KlEstimator::kK2:
      term = {.value = x * x / 2, .slope = x};
      break;
    case KlEstimator::kK3:
      term = K3(x, options);
      break;
    case KlEstimator::kAbsolute:
      term = {.value = std::abs(x), .slope = x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0};
      break;
  }
  const bool bounds = options.bound_all || options.estimator == KlEstimator::kK3;
  if (bounds && options.max_value.has_value()) term = Bounded(term, *options.max_value);
  if (options.straight_through) term.slope = x;
  return term;
}

Result<KlRegularizerTerm> KlRegularizer(const TokenBatch& batch, const ReductionWeights& weights,
                                        std::span<const double> reference_logprobs,
                                        const KlPenaltyOptions& options, double coefficient) {
  const size_t num_tokens = batch.num_tokens();
  PACE_RETURN_IF_ERROR(batch.Validate());
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(
      CheckLength("reference_logprobs", reference_logprobs.size(), "tokens", num_tokens, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("reduction weights", weights.token.size(), "tokens", num_tokens, false));
  KlRegularizerTerm out;
  out.gradient.assign(num_tokens, 0.0);
  MeanOf mean;
  for (size_t token = 0; token < num_tokens; ++token) {
    if (!batch.is_policy_token(token)) continue;
    const KlTerm term = KlPenalty(options, batch.logprobs[token], reference_logprobs[token]);
    const double weight = coefficient * weights.token[token];
    out.loss += weight * term.value;
    out.gradient[token] = weight * term.slope;
    mean.Add(term.value);
  }
  out.metric = mean.As("train/kl_penalty");
  return out;
}

double NextKlCoefficient(double coefficient, double kl, int64_t num_sequences,
                         const KlControllerOptions& options) {
  if (options.target == 0 || !std::isfinite(kl)) return coefficient;
  const double error = std::clamp(kl / options.target - 1, -0.2, 0.2);
  const double factor = 1 + error * static_cast<double>(num_sequences) / options.horizon;
  // A batch larger than five horizons must not turn the penalty round.
  return coefficient * std::max(factor, 0.0);
}

}  // namespace pace
