// What most losses share: a term per token, and its weighted sum.
//
//   const auto term_of = [&](size_t token) { return TokenTerm{...}; };
//   const TokenSums sums = SumTokens(batch, weights, term_of, out);
//   out.metrics = {sums.Kl(), sums.ClipFraction()};
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_LOSS_TOKEN_TERM_H_
#define PACE_TRAIN_LOSS_TOKEN_TERM_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "train/loss/losses.h"

namespace pace {

// L_t, its derivative in the token's own log-prob, and what to report.
struct TokenTerm {
  double value = 0;
  double slope = 0;
  double log_ratio = 0;        // log pi_theta - log reference
  bool clipped = false;        // the loss took the clipped branch
  bool clipped_lower = false;  // a second bound took over (dual clip, truncation)
};

// exp of a log-ratio that a loss may bound for stability. Beyond the bound the
// ratio is constant, so its slope is 0.
struct BoundedRatio {
  BoundedRatio(double unbounded, double bound) : BoundedRatio(unbounded, -bound, bound) {}
  BoundedRatio(double unbounded, double lowest, double highest)
      : log_ratio(std::clamp(unbounded, lowest, highest)),
        value(std::exp(log_ratio)),
        slope(unbounded >= lowest && unbounded <= highest ? value : 0) {}

  double log_ratio;
  double value;
  double slope;  // d value / d logprob
};

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// PPO's term: max(-A r, -A clip(r, lower, upper)), and where A < 0 at most
// -A dual_clip.
inline TokenTerm ClippedTerm(double advantage, const BoundedRatio& ratio, double lower,
                             double upper, const std::optional<double>& dual_clip) {
  TokenTerm term{.log_ratio = ratio.log_ratio};
  // Nothing to learn, not even 0 times infinity.
  if (advantage == 0 && std::isinf(ratio.value)) return term;
  const double plain = -advantage * ratio.value;
  const double bounded = -advantage * std::clamp(ratio.value, lower, upper);
  term.clipped = bounded > plain;
  term.value = term.clipped ? bounded : plain;
  term.slope = term.clipped ? 0 : -advantage * ratio.slope;
  if (dual_clip.has_value() && advantage < 0 && term.value > -advantage * *dual_clip) {
    term.clipped_lower = true;
    term.value = -advantage * *dual_clip;
    term.slope = 0;
  }
  return term;
}

// Means over the policy tokens that were summed.
struct TokenSums {
  MeanOf kl;  // of -log_ratio
  MeanOf ratio;
  MeanOf clipped;
  MeanOf clipped_lower;

  void Add(const TokenTerm& term) {
    kl.Add(-term.log_ratio);
    ratio.Add(std::exp(term.log_ratio));
    clipped.Add(term.clipped ? 1 : 0);
    clipped_lower.Add(term.clipped_lower ? 1 : 0);
  }
  Metric Kl() const { return kl.As("train/kl"); }
  Metric ClipFraction() const { return clipped.As("train/clip_fraction"); }
  Metric ClipFractionLower() const { return clipped_lower.As("train/clip_fraction_lower"); }
};

// Adds sum_t w_t u_t L_t and its gradient to `out`, u the importance weights.
template <typename TermOf>
TokenSums SumTokens(const TokenBatch& batch, const ReductionWeights& weights, const TermOf& term_of,
                    LossResult& out) {
  using Padding = ReductionWeights::Padding;
  TokenSums sums;
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    const bool counts = batch.is_policy_token(token);
    if (!counts && weights.padding == Padding::kIgnored) continue;
    const TokenTerm term = term_of(token);
    const double weight = weights.token[token] * batch.importance_weight(token);
    out.loss += weight * term.value;
    if (counts || weights.padding == Padding::kInLossAndGradient) {
      out.gradient[token] += weight * term.slope;
    }
    if (counts) sums.Add(term);
  }
  out.loss += weights.offset;
  return sums;
}

// How a token's log-prob and advantage move together in a batch.
//
//   cov_t = (A_t - mean A) (log pi_theta - mean log pi_theta)
//
// over the policy tokens, without gradient. A few tokens with a large value
// drive the fall of entropy (arXiv 2505.22617); clip_cov leaves some of them
// out, kl_cov holds the largest back.
//
// One entry per token; 0 where the mask is 0.
inline std::vector<double> TokenCovariances(const TokenBatch& batch) {
  MeanOf advantage;
  MeanOf logprob;
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    if (!batch.is_policy_token(token)) continue;
    advantage.Add(batch.advantages[token]);
    logprob.Add(batch.frozen(token));
  }
  std::vector<double> covariances(batch.num_tokens(), 0.0);
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    if (!batch.is_policy_token(token)) continue;
    covariances[token] =
        (batch.advantages[token] - advantage.value()) * (batch.frozen(token) - logprob.value());
  }
  return covariances;
}

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_TOKEN_TERM_H_
