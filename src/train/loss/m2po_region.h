// The trust region of M2PO: which tokens an update may still use.
//
// d_t = log pi_theta - log pi_reference. Only tokens that an update pushes
// further away count: A > 0 with d > 0, or A < 0 with d < 0, the *trust-region
// tokens*. M2 is the mean of d^2 over them, and a budget bounds it (0.04: a root
// mean square of 0.2).
//
//   paper     drop the token with the largest d^2 until M2 of the rest is
//             within the budget
//   official  one threshold tau so that the mean of min(d^2, tau^2) is within
//             the budget: tokens beyond tau count at the cap. tau is snapped to
//             the largest d among the data that fits; it becomes ratio bounds
//             e^-tau and e^tau (evaluated in float32, as published, which decides
//             whether the token at tau itself is clipped)
//   areal     all policy tokens, d = rollout - proximal; drop the largest until
//             the mean is *below* the threshold; at least one token stays
//
// Source: arXiv 2510.01161, its Algorithm 1, and the code of
// Infini-AI-Lab/M2PO, which differ; AReaL's port differs from both.
// On heavy-tailed ratios the official rule stops more tokens than the paper's.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_LOSS_M2PO_REGION_H_
#define PACE_TRAIN_LOSS_M2PO_REGION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "config/loss_options.h"
#include "core/status.h"
#include "train/math/token_batch.h"

namespace pace {

struct M2poRegion {
  int64_t num_trust_tokens = 0;
  double m2_before = 0;
  double m2_after = 0;
  // paper, areal: 1 on the tokens that keep their loss (policy tokens only).
  std::vector<uint8_t> kept = {};
  // official: bounds of the ratio. Unbounded is written 0 and 1e5, as published.
  double lower = 0;
  double upper = 1e5;
};

// REQUIRES: the batch is valid, with reference log-probs; budget >= 0
M2poRegion PaperRegion(const TokenBatch& batch, double budget);

// `compat` repeats the published code where it fails: the sign of A is read
// from each sequence's first token, masked or not; where even the smallest d^2
// is above the cap tau is 0; a budget of 0, or a d^2 below 1e-12 just under the
// cap, is an error. Without it signs are each token's own, tau is sqrt(budget)
// in the first case, and the others give tau 0.
Result<M2poRegion> OfficialRegion(const TokenBatch& batch, double budget, bool compat);

// The region of options.rule, its bounds widened by min_clip_*.
Result<M2poRegion> ChooseRegion(const TokenBatch& batch, const M2poOptions& options);

// The policy tokens that stay when those of the largest
// (rollout - proximal)^2 leave, until the mean is below the threshold.
std::vector<uint8_t> ArealKeptTokens(const SequenceLayout& layout,
                                     std::span<const double> rollout_logprobs,
                                     std::span<const double> proximal_logprobs, double threshold);

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_M2PO_REGION_H_
