// DRO: REINFORCE with a quadratic penalty on the log-ratio.
//
//   L_t = -(A log pi_theta - beta / 2 (log pi_theta - log pi_reference)^2)
//
// Source: arXiv 2405.19107, whose value function stands in the advantage here,
// as in verl.
#ifndef PACE_TRAIN_LOSS_DRO_H_
#define PACE_TRAIN_LOSS_DRO_H_

#include "train/loss/losses.h"

namespace pace {

struct DroOptions {
  // Strength of the pull towards the reference.
  double beta = 0.1;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class DroLoss final : public PolicyLoss {
 public:
  using Options = DroOptions;
  // REQUIRES: options.Validate().ok()
  explicit DroLoss(const DroOptions& options) : options_(options) {}

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const DroOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_DRO_H_
