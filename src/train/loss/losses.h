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
//   batch.advantages = part_advantages;
//   batch.importance_weights = part_weights;
//   Result<ReductionWeights> weights = WeighTokens(part, totals, reduction);
//   Result<LossResult> result = (*loss)->Evaluate(batch, *weights);
//   objective += result->loss;  // result->gradient: d objective / d current, per token
//   MergeMetrics(result->metrics, metrics);
//
// with  MakeAdvantageEstimator("grpo"), CorrectionNamed("tis"),
//       MakePolicyLoss("ppo", {{"clip_high", "0.28"}, {"dual_clip", "10"}}).
//
// A new loss is a source beside this file, a line below and in losses.cc, and its
// options in config/loss_options.h; losses_test.cc then checks its gradient, masks and
// splits.
// Where its formula has a stop-gradient it reads batch.frozen(token), so that
// finite differences of Evaluate are the gradient it must return.
//
// Thread-safety: losses are immutable; Evaluate is const and pure.
#ifndef PACE_TRAIN_LOSS_LOSSES_H_
#define PACE_TRAIN_LOSS_LOSSES_H_

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "config/loss_options.h"
#include "core/status.h"
#include "train/math/metric.h"
#include "train/math/reduction.h"
#include "train/math/token_batch.h"

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

struct LossTraits {
  LossInputs inputs = {};
  LossScope scope = LossScope::kSequence;
  // The reduction of the paper that defines the loss.
  ReductionMode paper_reduction = ReductionMode::kTokenMean;
};

class PolicyLoss {
 public:
  // Adds to `out`. REQUIRES: lengths agree, the inputs are there, out.gradient is all 0.
  using Compute = std::function<Status(const TokenBatch& batch, const ReductionWeights& weights,
                                       LossResult& out)>;

  explicit PolicyLoss(Compute compute, const LossTraits& traits = {})
      : compute_(std::move(compute)), traits_(traits) {}

  // An error names the array that is missing or has the wrong length, or says
  // why the batch has no loss.
  Result<LossResult> Evaluate(const TokenBatch& batch, const ReductionWeights& weights) const;

  const LossInputs& inputs() const { return traits_.inputs; }
  LossScope scope() const { return traits_.scope; }
  ReductionMode paper_reduction() const { return traits_.paper_reduction; }

 private:
  Compute compute_;
  LossTraits traits_;
};

// An option that breaks a rule is an error.
Result<std::unique_ptr<PolicyLoss>> MakePolicyLoss(const LossOptions& options);
// By name; an unknown name or option is an error that names the nearest.
Result<std::unique_ptr<PolicyLoss>> MakePolicyLoss(std::string_view name,
                                                   const NamedSettings& settings = {});

// Each in its own source, where its formula stands. REQUIRES: valid options
PolicyLoss CispoLoss(const CispoOptions& options);
PolicyLoss ClipCovLoss(const ClipCovOptions& options);
PolicyLoss DecoupledPpoLoss(const DecoupledPpoOptions& options);
PolicyLoss DisLoss(const DisOptions& options);
PolicyLoss DppoLoss(const DppoOptions& options);
PolicyLoss DroLoss(const DroOptions& options);
PolicyLoss GeometricMeanLoss(const GeometricMeanOptions& options);
PolicyLoss GspoLoss(const GspoOptions& options);
PolicyLoss KlCovLoss(const KlCovOptions& options);
PolicyLoss M2poLoss(const M2poOptions& options);
PolicyLoss PpoLoss(const PpoOptions& options);
PolicyLoss ReinforceLoss(ReductionMode paper_reduction);
PolicyLoss SapoLoss(const SapoOptions& options);
PolicyLoss ToprLoss(const ToprOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_LOSSES_H_
