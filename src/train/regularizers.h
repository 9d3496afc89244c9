// What is added to a policy loss: a KL penalty, an entropy bonus.
//
//   loss += kl_coefficient sum_t w_t KL_t - entropy_coefficient sum_t w_t H_t
//
// with the reduction weights of the policy loss.
//
//   Result<RegularizerTerm> kl = KlRegularizer(batch, weights, reference, options, 0.001);
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_REGULARIZERS_H_
#define PACE_TRAIN_REGULARIZERS_H_

#include <span>
#include <vector>

#include "core/status.h"
#include "train/kl_penalty.h"
#include "train/metric.h"
#include "train/reduction.h"
#include "train/token_batch.h"

namespace pace {

// A term of the objective: its value, and its derivative in one number per
// token (the token's log-prob, or its entropy); 0 where the mask is 0.
struct RegularizerTerm {
  double loss = 0;
  std::vector<double> gradient = {};
  Metric metric = {};  // the mean over policy tokens, without the coefficient
};

// Derivative in batch.logprobs.
Result<RegularizerTerm> KlRegularizer(const TokenBatch& batch, const ReductionWeights& weights,
                                      std::span<const double> reference_logprobs,
                                      const KlPenaltyOptions& options, double coefficient);

// Derivative in the entropies.
Result<RegularizerTerm> EntropyBonus(const SequenceLayout& layout, const ReductionWeights& weights,
                                     std::span<const double> entropies, double coefficient);

}  // namespace pace

#endif  // PACE_TRAIN_REGULARIZERS_H_
