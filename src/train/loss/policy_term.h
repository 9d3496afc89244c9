// PolicyTerm: the policy loss of a batch, with the penalty for leaving the initial policy.
//
//   const PolicyTerm term = {.loss = loss, .weights = weights};
//   PACE_ASSIGN_OR_RETURN(const LossResult result, term.Evaluate(batch));
//
// Where each token's derivative follows from its own log-prob, parts of a batch can be
// differentiated one after the other, while their logits are there. Borrows all that it names.
// Thread-safety: plain data.
#ifndef PACE_TRAIN_LOSS_POLICY_TERM_H_
#define PACE_TRAIN_LOSS_POLICY_TERM_H_

#include <cstddef>
#include <span>
#include <vector>

#include "core/status.h"
#include "train/loss/losses.h"
#include "train/math/kl_penalty.h"

namespace pace {

struct PolicyTerm {
  const PolicyLoss& loss;
  const ReductionWeights& weights;
  // d loss / d logprob where the loss has seen the whole minibatch; empty: it sees this batch.
  std::span<const double> given = {};
  std::span<const double> initial_logprobs = {};  // empty: no penalty
  KlPenaltyOptions kl = {};
  double kl_coefficient = 0;

  // Loss and metrics of a given derivative are not counted again.
  Result<LossResult> Evaluate(const TokenBatch& batch) const;
  bool IsOfSingleTokens() const;
  // The derivatives of the tokens [begin, end) alone, whose log-probs must be there.
  // REQUIRES: IsOfSingleTokens()
  Result<std::vector<double>> Slopes(const TokenBatch& batch, size_t begin, size_t end) const;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_POLICY_TERM_H_
