#include "train/loss/reinforce.h"

#include "train/loss/token_term.h"

namespace pace {

void ReinforceOptions::Read(OptionReader& /*reader*/) {}

Status ReinforceLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                              LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const double slope = -batch.advantages[token];
    const double log_ratio = reference.empty() ? 0 : batch.frozen(token) - reference[token];
    return TokenTerm{
        .value = slope * batch.logprobs[token], .slope = slope, .log_ratio = log_ratio};
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  if (!reference.empty()) out.metrics = {sums.Kl()};
  return Status::Ok();
}

}  // namespace pace
