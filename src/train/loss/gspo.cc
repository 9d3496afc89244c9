#include "train/loss/gspo.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"
#include "train/sequence_sum.h"

namespace pace {

void GspoOptions::Read(OptionReader& reader) {
  reader.Real("clip_low", clip_low);
  reader.Real("clip_high", clip_high);
  reader.Real("max_log_ratio", max_log_ratio);
}

Status GspoOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckClipWidths("gspo", clip_low, clip_high));
  return CheckPositive("gspo", "max_log_ratio", max_log_ratio);
}

Status GspoLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                         LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const std::vector<SequenceSum> log_ratios = SumBySequence(
      batch.layout, [&](size_t token) { return batch.frozen(token) - reference[token]; });
  const std::vector<size_t> sequences = SequenceOfTokens(batch.layout);
  const auto term_of = [&](size_t token) {
    // Only the second part has a gradient; its value is 0.
    const double log_ratio =
        log_ratios[sequences[token]].mean() + (batch.logprobs[token] - batch.frozen(token));
    const BoundedRatio ratio(log_ratio, -kUnbounded, options_.max_log_ratio);
    TokenTerm term = ClippedTerm(batch.advantages[token], ratio, 1 - options_.clip_low,
                                 1 + options_.clip_high, std::nullopt);
    term.log_ratio = batch.frozen(token) - reference[token];
    return term;
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction()};
  return Status::Ok();
}

}  // namespace pace
