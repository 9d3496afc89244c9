// SAPO: a sigmoid gate in place of the clip.
//
//   tau = tau_positive where A > 0, else tau_negative
//   L_t = -A (4 / tau) sigmoid(tau (r - 1))
//
// At r = 1 the slope is that of REINFORCE; it fades smoothly as the ratio
// leaves 1, faster for bad tokens. Source: arXiv 2511.20347, 1.0 and 1.05,
// seq-mean-token-mean. verl bounds |log r| by 20, AReaL does not (and takes a
// token mean).
#ifndef PACE_TRAIN_LOSS_SAPO_H_
#define PACE_TRAIN_LOSS_SAPO_H_

#include "train/loss/losses.h"

namespace pace {

struct SapoOptions {
  // Sharpness of the gate where the advantage is positive ...
  double tau_positive = 1.0;
  // ... and where it is not.
  double tau_negative = 1.05;
  double max_log_ratio = 20;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class SapoLoss final : public PolicyLoss {
 public:
  using Options = SapoOptions;
  // REQUIRES: options.Validate().ok()
  explicit SapoLoss(const SapoOptions& options) : options_(options) {}

  ReductionMode paper_reduction() const override { return ReductionMode::kSequenceMeanTokenMean; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const SapoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_SAPO_H_
