// REINFORCE: the plain policy gradient, on-policy or importance-weighted.
//
//   L_t = -A log pi_theta
//
// With batch.importance_weights (train/correction) it is the policy gradient
// corrected for the policy that sampled, w A grad log pi. Reduced by
// seq-mean-token-sum. GPG (arXiv 2504.02546) uses this loss, token-mean, with
// an advantage of its own; it stands in the list as `gpg`.
#ifndef PACE_TRAIN_LOSS_REINFORCE_H_
#define PACE_TRAIN_LOSS_REINFORCE_H_

#include "train/loss/losses.h"

namespace pace {

struct ReinforceOptions {
  ReductionMode paper_reduction = ReductionMode::kSequenceMeanTokenSum;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const { return Status::Ok(); }
};

class ReinforceLoss final : public PolicyLoss {
 public:
  using Options = ReinforceOptions;
  explicit ReinforceLoss(const ReinforceOptions& options) : options_(options) {}

  // The reference serves a metric alone.
  LossInputs inputs() const override { return {.reference = false}; }
  ReductionMode paper_reduction() const override { return options_.paper_reduction; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const ReinforceOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_REINFORCE_H_
