// Decoupled PPO: a clip around the proximal policy, a weight for who sampled.
//
//   r   = pi_theta / pi_proximal          u = sg(pi_proximal / pi_rollout)
//   L_t = u min(max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)), |A| dual_clip)
//
// pi_proximal is the trainer's policy just before the step's updates: recompute
// it by a forward pass, or estimate it (train/correction/proximal.h); either
// way it comes as batch.proximal_logprobs. Tokens that u leaves out
// (train/correction/behavior_weights.h) lose their loss but stay in the divisor.
//
// With `level: sequence` r is the geometric mean of the kept tokens' ratios,
// with its full gradient, and A their mean advantage: AReaL's form of GSPO.
// `m2_threshold` first drops the tokens of largest (log u)^2 and divides by the
// rest: AReaL's form of M2PO (m2po_region.h).
//
// Source: arXiv 2505.24298, token-mean, 0.2, no dual clip.
#ifndef PACE_TRAIN_LOSS_DECOUPLED_PPO_H_
#define PACE_TRAIN_LOSS_DECOUPLED_PPO_H_

#include <optional>

#include "train/correction/behavior_weights.h"
#include "train/loss/losses.h"

namespace pace {

struct DecoupledPpoOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  std::optional<double> dual_clip = std::nullopt;
  // Whether r is a token's own or its sequence's.
  RatioLevel level = RatioLevel::kToken;
  // false: u = 1 on all tokens.
  bool weigh_behavior = true;
  BehaviorOptions behavior = {};
  // Bound of the mean of (log u)^2; none: no token is dropped for it.
  std::optional<double> m2_threshold = std::nullopt;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class DecoupledPpoLoss final : public PolicyLoss {
 public:
  using Options = DecoupledPpoOptions;
  // REQUIRES: options.Validate().ok()
  explicit DecoupledPpoLoss(const DecoupledPpoOptions& options) : options_(options) {}

  LossInputs inputs() const override {
    return {.reference = false, .rollout = true, .proximal = true};
  }
  LossScope scope() const override {
    return options_.m2_threshold.has_value() ? LossScope::kMinibatch : LossScope::kSequence;
  }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  void ComputeTokens(const TokenBatch& batch, const BehaviorWeights& behavior,
                     const ReductionWeights& weights, LossResult& out) const;
  void ComputeSequences(const TokenBatch& batch, const BehaviorWeights& behavior,
                        const ReductionWeights& weights, LossResult& out) const;

  const DecoupledPpoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_DECOUPLED_PPO_H_
