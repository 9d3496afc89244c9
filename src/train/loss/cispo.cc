#include "train/loss/cispo.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {

void CispoOptions::Read(OptionReader& reader) {
  reader.Real("clip_low", clip_low);
  reader.Real("clip_high", clip_high);
  reader.Real("max_log_ratio", max_log_ratio);
}

Status CispoOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckClipWidths("cispo", clip_low, clip_high));
  return CheckPositive("cispo", "max_log_ratio", max_log_ratio);
}

Status CispoLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                          LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const BoundedRatio ratio(batch.frozen(token) - reference[token], options_.max_log_ratio);
    const double weight = std::clamp(ratio.value, 1 - options_.clip_low, 1 + options_.clip_high);
    const double slope = -weight * batch.advantages[token];
    return TokenTerm{.value = slope * batch.logprobs[token],
                     .slope = slope,
                     .log_ratio = ratio.log_ratio,
                     .clipped = weight != ratio.value};
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction()};
  return Status::Ok();
}

}  // namespace pace
