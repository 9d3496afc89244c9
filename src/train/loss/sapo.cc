#include "train/loss/sapo.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {

void SapoOptions::Read(OptionReader& reader) {
  reader.Real("tau_positive", tau_positive);
  reader.Real("tau_negative", tau_negative);
  reader.Real("max_log_ratio", max_log_ratio);
}

Status SapoOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckPositive("sapo", "tau_positive", tau_positive));
  PACE_RETURN_IF_ERROR(CheckPositive("sapo", "tau_negative", tau_negative));
  return CheckPositive("sapo", "max_log_ratio", max_log_ratio);
}

Status SapoLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                         LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const BoundedRatio ratio(batch.logprobs[token] - reference[token], options_.max_log_ratio);
    const double advantage = batch.advantages[token];
    const double tau = advantage > 0 ? options_.tau_positive : options_.tau_negative;
    const double gate = 1 / (1 + std::exp(-tau * (ratio.value - 1)));
    return TokenTerm{.value = -advantage * gate * 4 / tau,
                     .slope = -advantage * 4 * gate * (1 - gate) * ratio.slope,
                     .log_ratio = ratio.log_ratio};
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl()};
  return Status::Ok();
}

}  // namespace pace
