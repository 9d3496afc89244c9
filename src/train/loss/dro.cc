#include "train/loss/dro.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {

void DroOptions::Read(OptionReader& reader) {
  reader.Real("beta", beta);
}

Status DroOptions::Validate() const {
  return CheckPositive("dro", "beta", beta);
}

Status DroLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                        LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const double log_ratio = batch.logprobs[token] - reference[token];
    const double advantage = batch.advantages[token];
    return TokenTerm{
        .value = -advantage * batch.logprobs[token] + options_.beta / 2 * log_ratio * log_ratio,
        .slope = -advantage + options_.beta * log_ratio,
        .log_ratio = log_ratio};
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl()};
  return Status::Ok();
}

}  // namespace pace
