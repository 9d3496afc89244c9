// Estimators of KL(pi_theta || pi_reference) from sampled tokens.
//
// With x = log pi_theta - log pi_reference of a token:
//
//   k1    x                      unbiased, large variance
//   k2    x^2 / 2                biased; its gradient is right on average
//   k3    e^-x - 1 + x           unbiased, never negative
//   abs   |x|
//
// The estimators come from joschu.net/blog/kl-approx.html. Peers bound them:
// verl cuts -x of k3 to +-20 and its value to +-10, with zero gradient there;
// AReaL cuts every value to +-10 where asked. `straight_through` ("k3+") keeps
// the value and takes the gradient of k2. Defaults are verl's.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_MATH_KL_PENALTY_H_
#define PACE_TRAIN_MATH_KL_PENALTY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "config/train_options.h"
#include "core/status.h"
#include "train/math/metric.h"
#include "train/math/reduction.h"
#include "train/math/token_batch.h"

namespace pace {

struct KlTerm {
  double value = 0;
  double slope = 0;  // in log pi_theta
};

KlTerm KlPenalty(const KlPenaltyOptions& options, double logprob, double reference_logprob);

// The penalty of a batch as a term of the objective: coefficient sum_t w_t KL_t, with
// the reduction weights of the policy loss.
struct KlRegularizerTerm {
  double loss = 0;
  std::vector<double> gradient = {};  // in batch.logprobs; 0 where the mask is 0
  Metric metric = {};                 // the mean over policy tokens, without the coefficient
};
Result<KlRegularizerTerm> KlRegularizer(const TokenBatch& batch, const ReductionWeights& weights,
                                        std::span<const double> reference_logprobs,
                                        const KlPenaltyOptions& options, double coefficient);

// The coefficient of the next step, fixed or steered towards a target.
//
//   error = clip(KL / target - 1, -0.2, 0.2)
//   coefficient *= 1 + error * sequences / horizon
//
// once per step, after the step used it: a policy further away than the target
// pays more from the next step on. Source: arXiv 1909.08593, as in verl, where
// KL is the mean over sequences of each one's mean over its policy tokens. A KL
// that is not finite, or a target of 0, changes nothing.
double NextKlCoefficient(double coefficient, double kl, int64_t num_sequences,
                         const KlControllerOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_MATH_KL_PENALTY_H_
