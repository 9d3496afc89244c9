// From the rewards of a batch to the advantages it is trained with: corrections,
// penalties inside the reward, the estimator, VCPO's baseline. Plain arithmetic on
// the arrays of a Minibatch (minibatch.h).
//
//   PACE_RETURN_IF_ERROR(ApplyCorrection(correction, batch, metrics));
//   Result<double> kl = ShapeRewards(options, coefficient, reference, batch, metrics);
//   PACE_RETURN_IF_ERROR(EstimateAdvantages(*estimator, batch, metrics));
//
// over all sequences of a step. In that order: estimators that standardise see
// the mask and the rewards that are trained on.
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_BATCH_ADVANTAGES_H_
#define PACE_TRAIN_BATCH_ADVANTAGES_H_

#include <span>

#include "core/status.h"
#include "train/advantage/advantages.h"
#include "train/correction/corrections.h"
#include "train/math/kl_penalty.h"
#include "train/math/metric.h"
#include "train/math/token_batch.h"
#include "train/minibatch.h"

namespace pace {

// Fills importance_weights and shrinks the mask. REQUIRES: proximal_logprobs
Status ApplyCorrection(const CorrectionOptions& options, Minibatch& batch, MetricList& metrics);

// r_t = R on the last policy token, less coefficient KL_t on each, KL between the
// ratio's reference and the initial policy. Fills token_rewards and
// shaped_rewards; train/kl_reward is the mean KL over tokens. Returns what a
// controller reads: the mean over sequences of each one's mean.
// REQUIRES: initial_logprobs, those of the reference
Result<double> ShapeRewards(const KlPenaltyOptions& options, double coefficient,
                            RatioReference reference, Minibatch& batch, MetricList& metrics);

// Fills advantages, and with values also returns and train/explained_variance: the
// share of the returns' variance that the values knew before the step. With
// baselines, train/greedy_reward is their mean.
Status EstimateAdvantages(const AdvantageEstimator& estimator, Minibatch& batch,
                          MetricList& metrics);

// VCPO's baseline (correction/opob.cc) over one minibatch. `gradient_norms`, one per
// sequence, of the log-prob of its whole response at the weights that `logprobs`
// are of. By group, advantages become the coefficients; over the minibatch, one
// baseline goes off the advantages there are. train/opob_baseline is its mean.
Status ApplyOffPolicyBaseline(const OpobOptions& options, std::span<const double> gradient_norms,
                              std::span<const double> logprobs, Minibatch& batch,
                              MetricList& metrics);

}  // namespace pace

#endif  // PACE_TRAIN_BATCH_ADVANTAGES_H_
