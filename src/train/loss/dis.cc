#include "train/loss/dis.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {

void DisOptions::Read(OptionReader& reader) {
  reader.Real("band_low", band_low);
  reader.Real("band_high", band_high);
}

Status DisOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckPositive("dis", "band_low", band_low));
  return CheckPositive("dis", "band_high", band_high);
}

Status DisLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                        LossResult& out) const {
  const auto term_of = [&](size_t token) {
    TokenTerm term{.log_ratio = batch.logprobs[token] - batch.rollout_logprobs[token]};
    const double ratio = std::exp(term.log_ratio);
    // Which side of the band a token is on has no gradient.
    const double frozen_ratio = std::exp(batch.frozen(token) - batch.rollout_logprobs[token]);
    term.clipped = frozen_ratio <= 1 - options_.band_low || frozen_ratio >= 1 + options_.band_high;
    if (term.clipped) return term;
    term.value = -batch.advantages[token] * ratio;
    term.slope = term.value;
    return term;
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction()};
  return Status::Ok();
}

}  // namespace pace
