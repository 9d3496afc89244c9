// DIS, SAO's direct importance sampling: the ratio inside a band, nothing outside.
//
//   r   = pi_theta / pi_rollout: no policy in between
//   L_t = -A r   where 1 - band_low < r < 1 + band_high,   else 0
//
// Source: SAO (arXiv 2607.07508), which has no official code: 0.3 and 5.0 for
// mathematics, 0.8 and 3.0 for coding. IcePop is the same band on a weight
// without gradient; as a loss on -A r the gradients agree.
#ifndef PACE_TRAIN_LOSS_DIS_H_
#define PACE_TRAIN_LOSS_DIS_H_

#include "train/loss/losses.h"

namespace pace {

struct DisOptions {
  // Tokens whose ratio is 1 - band_low or less are left out ...
  double band_low = 0.3;
  // ... and those at 1 + band_high or more.
  double band_high = 5.0;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class DisLoss final : public PolicyLoss {
 public:
  using Options = DisOptions;
  // REQUIRES: options.Validate().ok()
  explicit DisLoss(const DisOptions& options) : options_(options) {}

  LossInputs inputs() const override { return {.reference = false, .rollout = true}; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const DisOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_DIS_H_
