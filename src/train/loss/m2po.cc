#include "train/loss/m2po.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {

void M2poOptions::Read(OptionReader& reader) {
  reader.Choice("rule", {{"paper", Rule::kPaper}, {"official", Rule::kOfficial}}, rule);
  reader.Real("budget", budget);
  reader.Choice("scope",
                {{"minibatch", LossScope::kMinibatch}, {"micro_batch", LossScope::kMicroBatch}},
                scope);
  reader.OptionalReal("min_clip_low", min_clip_low);
  reader.OptionalReal("min_clip_high", min_clip_high);
  reader.Bool("compat", compat);
}

Status M2poOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckNotNegative("m2po", "budget", budget));
  PACE_RETURN_IF_ERROR(CheckNotNegative("m2po", "min_clip_low", min_clip_low.value_or(0)));
  return CheckNotNegative("m2po", "min_clip_high", min_clip_high.value_or(0));
}

Result<M2poRegion> M2poLoss::Region(const TokenBatch& batch) const {
  if (options_.rule == M2poOptions::Rule::kPaper) return PaperRegion(batch, options_.budget);
  Result<M2poRegion> region = OfficialRegion(batch, options_.budget, options_.compat);
  if (!region.ok()) return region;
  if (options_.min_clip_low.has_value()) {
    region->lower = std::min(region->lower, 1 - *options_.min_clip_low);
  }
  if (options_.min_clip_high.has_value()) {
    region->upper = std::max(region->upper, 1 + *options_.min_clip_high);
  }
  return region;
}

Status M2poLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                         LossResult& out) const {
  PACE_ASSIGN_OR_RETURN(const M2poRegion region, Region(batch));
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const BoundedRatio ratio(batch.logprobs[token] - reference[token], kUnbounded);
    if (options_.rule == M2poOptions::Rule::kOfficial) {
      return ClippedTerm(batch.advantages[token], ratio, region.lower, region.upper, std::nullopt);
    }
    TokenTerm term{.log_ratio = ratio.log_ratio};
    term.clipped = region.kept[token] == 0;
    if (term.clipped || batch.advantages[token] == 0) return term;
    term.value = -batch.advantages[token] * ratio.value;
    term.slope = term.value;
    return term;
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  const auto num_trust_tokens = static_cast<double>(region.num_trust_tokens);
  out.metrics = {sums.Kl(), sums.ClipFraction(),
                 Metric{"train/m2", region.m2_before, num_trust_tokens},
                 Metric{"train/m2_after", region.m2_after, num_trust_tokens}};
  return Status::Ok();
}

}  // namespace pace
