#include "train/regularizers.h"

namespace pace {

Result<RegularizerTerm> KlRegularizer(const TokenBatch& batch, const ReductionWeights& weights,
                                      std::span<const double> reference_logprobs,
                                      const KlPenaltyOptions& options, double coefficient) {
  const size_t num_tokens = batch.num_tokens();
  PACE_RETURN_IF_ERROR(batch.Validate());
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(
      CheckLength("reference_logprobs", reference_logprobs.size(), "tokens", num_tokens, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("reduction weights", weights.token.size(), "tokens", num_tokens, false));
  RegularizerTerm out;
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

Result<RegularizerTerm> EntropyBonus(const SequenceLayout& layout, const ReductionWeights& weights,
                                     std::span<const double> entropies, double coefficient) {
  const size_t num_tokens = layout.num_tokens();
  PACE_RETURN_IF_ERROR(layout.Validate());
  PACE_RETURN_IF_ERROR(CheckLength("entropies", entropies.size(), "tokens", num_tokens, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("reduction weights", weights.token.size(), "tokens", num_tokens, false));
  RegularizerTerm out;
  out.gradient.assign(num_tokens, 0.0);
  MeanOf mean;
  for (size_t token = 0; token < num_tokens; ++token) {
    if (layout.mask[token] == 0) continue;
    const double weight = -coefficient * weights.token[token];
    out.loss += weight * entropies[token];
    out.gradient[token] = weight;
    mean.Add(entropies[token]);
  }
  out.metric = mean.As("train/entropy");
  return out;
}

}  // namespace pace
