// GMPO: the geometric mean of the tokens' ratios, each clipped on its own.
//
//   d_t = log pi_theta - log pi_reference
//   c_t = min(sgn(A_t) d_t, sgn(A_t) clip(d_t, -clip_low, clip_high)) sgn(A_t)
//   L_i = -mean_t(A_t) exp(mean_t c_t)
//
// The widths bound log-ratios, not ratios. Source: arXiv 2507.20673; 0.4 and
// 0.4. L_i weighs what the reduction gives its sequence as a whole: 1 / S under
// seq-mean-token-mean. verl divides by all rows of a batch, also by those
// without a policy token; we do when `totals` counts them.
// Importance weights enter by their geometric mean, as in verl.
#include "train/loss/token_term.h"

namespace pace {
namespace {

// Keeps log 0 finite; verl's constant.
constexpr double kTinyWeight = 1e-10;

double SignOf(double value) {
  return value > 0 ? 1.0 : value < 0 ? -1.0 : 0.0;
}

}  // namespace

PolicyLoss GeometricMeanLoss(const GeometricMeanOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
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
          const double bounded = std::clamp(delta, -options.clip_low, options.clip_high);
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
  };
  return PolicyLoss(compute, {.paper_reduction = ReductionMode::kSequenceMeanTokenMean});
}

}  // namespace pace
