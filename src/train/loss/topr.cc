#include "train/loss/topr.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"
#include "train/sequence_sum.h"

namespace pace {

void ToprOptions::Read(OptionReader& reader) {
  reader.Choice("level", {{"token", RatioLevel::kToken}, {"sequence", RatioLevel::kSequence}},
                level);
  reader.Real("positive_weight", positive_weight);
  reader.Real("negative_weight", negative_weight);
}

Status ToprOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckNotNegative("topr", "positive_weight", positive_weight));
  return CheckNotNegative("topr", "negative_weight", negative_weight);
}

Status ToprLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                         LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const auto log_ratio_of = [&](size_t token) { return batch.frozen(token) - reference[token]; };
  const std::vector<SequenceSum> log_ratios = SumBySequence(batch.layout, log_ratio_of);
  const std::vector<size_t> sequences = SequenceOfTokens(batch.layout);
  const auto term_of = [&](size_t token) {
    const size_t sequence = sequences[token];
    const double own = log_ratio_of(token);
    const double log_ratio = options_.level == RatioLevel::kToken ? own : log_ratios[sequence].sum;
    const bool positive = batch.rewards[sequence] > 0;
    const double weight = positive ? options_.positive_weight
                                   : options_.negative_weight * std::exp(std::min(log_ratio, 0.0));
    const double slope = -weight * batch.advantages[token];
    return TokenTerm{.value = slope * batch.logprobs[token],
                     .slope = slope,
                     .log_ratio = own,
                     .clipped = !positive && log_ratio > 0};
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction()};
  return Status::Ok();
}

}  // namespace pace
