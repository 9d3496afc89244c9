// CISPO: REINFORCE weighted by the clipped ratio, which has no gradient.
//
//   L_t = -sg(clip(r, 1 - clip_low, 1 + clip_high)) A log pi_theta
//
// Every token keeps a gradient, however far its ratio went; only its weight is
// bounded. Source: MiniMax-M1 (arXiv 2506.13585), no lower bound and token-mean;
// widths are not given there. verl: 10 (none) and 0.2; AReaL: 1 (none) and 4.
// verl bounds |log r| by 20.
#ifndef PACE_TRAIN_LOSS_CISPO_H_
#define PACE_TRAIN_LOSS_CISPO_H_

#include "train/loss/losses.h"

namespace pace {

struct CispoOptions {
  // The weight is at least 1 - clip_low; 1 or more: no lower bound.
  double clip_low = 10;
  // The weight is at most 1 + clip_high.
  double clip_high = 0.2;
  double max_log_ratio = 20;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class CispoLoss final : public PolicyLoss {
 public:
  using Options = CispoOptions;
  // REQUIRES: options.Validate().ok()
  explicit CispoLoss(const CispoOptions& options) : options_(options) {}

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const CispoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_CISPO_H_
