// PolicyLoss: an objective over the tokens of a batch, and all that we have.
//
// A policy loss depends on the network only through the log-probabilities of
// the tokens. So it is plain arithmetic: from the batch and its reduction
// weights to the loss and its derivative in each log-prob, which the trainer
// feeds into the backward pass of the log-prob computation.
//
// A step, from rewards to gradients:
//
//   // 1. Once per step, over all its sequences. A correction may shrink the mask.
//   Result<Correction> correction = CorrectRollout(layout, proximal, rollout, correction_options);
//   mask = correction->mask;
//   Result<Advantages> advantages = (*estimator)->Estimate({.layout = layout, .rewards = rewards});
//
//   // 2. Once per minibatch: what its reduction divides by.
//   const ReductionOptions reduction = {.mode = (*loss)->paper_reduction()};
//   const MinibatchTotals totals = CountTotals(minibatch_layout);
//
//   // 3. Once per micro-batch (per minibatch where scope() asks for it).
//   TokenBatch batch = {.layout = part, .logprobs = current, .rollout_logprobs = recorded};
//   batch.advantages = ...;  batch.importance_weights = ...;  // of the part's tokens
//   Result<ReductionWeights> weights = WeighTokens(part, totals, reduction);
//   Result<LossResult> result = (*loss)->Evaluate(batch, *weights);
//   objective += result->loss;  // result->gradient: d objective / d current, per token
//   MergeMetrics(result->metrics, metrics);
//
// with  MakeAdvantageEstimator("grpo"), MakeCorrection("tis"),
//       MakePolicyLoss("ppo", {{"clip_high", "0.28"}, {"dual_clip", "10"}}).
//
// A new loss is one header and source beside this file and one line in
// losses.cc; losses_test.cc then checks its gradient, masks and splits.
// Where its formula has a stop-gradient it reads batch.frozen(token), so that
// finite differences of Evaluate are the gradient it must return.
//
// Thread-safety: losses are immutable; Evaluate is const and pure.
#ifndef PACE_TRAIN_LOSS_LOSSES_H_
#define PACE_TRAIN_LOSS_LOSSES_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "train/metric.h"
#include "train/option_reader.h"
#include "train/reduction.h"
#include "train/token_batch.h"

namespace pace {

struct LossResult {
  double loss = 0;
  // d loss / d logprobs, one per token; 0 where the mask is 0.
  std::vector<double> gradient = {};
  MetricList metrics = {};
};

// The arrays a loss reads beyond log-probs and advantages.
struct LossInputs {
  bool reference = true;  // batch.reference_logprobs()
  bool rollout = false;   // batch.rollout_logprobs
  bool proximal = false;  // batch.proximal_logprobs
  bool rewards = false;   // batch.rewards
};

// How much of a minibatch one Evaluate must see.
enum class LossScope {
  // Each sequence stands for itself: any split gives the same objective.
  kSequence,
  // Tokens of the whole minibatch are compared with one another: evaluate it
  // at once and hand each micro-batch its part of the gradient.
  kMinibatch,
  // As kMinibatch, but by choice compared within each micro-batch, as a peer
  // does: the objective then depends on the split.
  kMicroBatch,
};

class PolicyLoss {
 public:
  virtual ~PolicyLoss() = default;

  // An error names the array that is missing or has the wrong length, or says
  // why the batch has no loss.
  Result<LossResult> Evaluate(const TokenBatch& batch, const ReductionWeights& weights) const;

  virtual LossInputs inputs() const { return {}; }
  virtual LossScope scope() const { return LossScope::kSequence; }
  // The reduction of the paper that defines the loss.
  virtual ReductionMode paper_reduction() const { return ReductionMode::kTokenMean; }

 protected:
  // REQUIRES: lengths agree, the inputs are there, out.gradient is all 0.
  virtual Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                         LossResult& out) const = 0;
};

// An unknown name or setting is an error that lists what there is.
Result<std::unique_ptr<PolicyLoss>> MakePolicyLoss(std::string_view name,
                                                   const NamedSettings& settings = {});

// The names of all losses, in alphabetical order.
std::span<const std::string_view> PolicyLossNames();

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_LOSSES_H_
