// TOPR: REINFORCE on successes, tapered importance sampling on the rest.
//
//   reward > 0:   L_t = -positive_weight A log pi_theta
//   otherwise:    L_t = -negative_weight sg(clip(rho, 0, 1)) A log pi_theta
//
// Successes are learned as in supervised training whoever sampled them;
// failures are forgotten only as far as the policy still produces them.
// Source: arXiv 2503.14286. There rho is the ratio of the whole sequence
// (`level: sequence`); ROLL's code takes the token's own (`level: token`).
#ifndef PACE_TRAIN_LOSS_TOPR_H_
#define PACE_TRAIN_LOSS_TOPR_H_

#include "train/loss/losses.h"

namespace pace {

struct ToprOptions {
  RatioLevel level = RatioLevel::kSequence;
  double positive_weight = 1;
  double negative_weight = 1;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class ToprLoss final : public PolicyLoss {
 public:
  using Options = ToprOptions;
  // REQUIRES: options.Validate().ok()
  explicit ToprLoss(const ToprOptions& options) : options_(options) {}

  LossInputs inputs() const override { return {.rewards = true}; }
  ReductionMode paper_reduction() const override { return ReductionMode::kSequenceMeanTokenSum; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const ToprOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_TOPR_H_
