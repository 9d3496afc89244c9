#include "train/loss/geometric_mean.h"

#include "train/loss/clip_rules.h"
#include "train/loss/token_term.h"

namespace pace {
namespace {

// Keeps log 0 finite; verl's constant.
constexpr double kTinyWeight = 1e-10;

double SignOf(double value) {
  return value > 0 ? 1.0 : value < 0 ? -1.0 : 0.0;
}

}  // namespace

void GeometricMeanOptions::Read(OptionReader& reader) {
  reader.Real("clip_low", clip_low);
  reader.Real("clip_high", clip_high);
}

Status GeometricMeanOptions::Validate() const {
  return CheckClipWidths("geometric_mean", clip_low, clip_high);
}

Status GeometricMeanLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                                  LossResult& out) const {
  const std::span<const double> reference = batch.reference_logprobs();
  MeanOf kl;
  MeanOf clipped_high;
  MeanOf clipped_low;
  for (size_t sequence = 0; sequence < batch.layout.num_sequences(); ++sequence) {
    MeanOf log_ratio;
    MeanOf advantage;
    MeanOf log_importance;
    double sequence_weight = 0;
    const auto for_each_token = [&](const auto& visit) {
      for (size_t token = batch.layout.begin(sequence); token < batch.layout.end(sequence);
           ++token) {
        if (!batch.is_policy_token(token)) continue;
        const double delta = batch.logprobs[token] - reference[token];
        const double bounded = std::clamp(delta, -options_.clip_low, options_.clip_high);
        visit(token, delta, bounded, SignOf(batch.advantages[token]));
      }
    };
    for_each_token([&](size_t token, double delta, double bounded, double sign) {
      log_ratio.Add(sign == 0 ? 0 : sign * std::min(sign * delta, sign * bounded));
      advantage.Add(batch.advantages[token]);
      log_importance.Add(std::log(batch.importance_weight(token) + kTinyWeight));
      sequence_weight += weights.token[token];
      kl.Add(-delta);
      clipped_high.Add(bounded != delta && sign > 0 ? 1 : 0);
      clipped_low.Add(bounded != delta && sign < 0 ? 1 : 0);
    });
    if (log_ratio.weight() == 0) continue;
    const double importance =
        batch.importance_weights.empty() ? 1.0 : std::exp(log_importance.value());
    const double value = -advantage.value() * std::exp(log_ratio.value()) * importance;
    out.loss += sequence_weight * value;
    const double slope = sequence_weight * value / log_ratio.weight();
    for_each_token([&](size_t token, double delta, double bounded, double sign) {
      // The bounded branch is flat beyond its bound; with A = 0 there is none.
      if (sign != 0 && sign * delta <= sign * bounded) out.gradient[token] = slope;
    });
  }
  out.metrics = {kl.As("train/kl"), clipped_high.As("train/clip_fraction"),
                 clipped_low.As("train/clip_fraction_lower")};
  return Status::Ok();
}

}  // namespace pace
