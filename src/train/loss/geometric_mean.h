// GMPO: the geometric mean of the tokens' ratios, each clipped on its own.
//
//   d_t = log pi_theta - log pi_reference
//   c_t = min(sgn(A_t) d_t, sgn(A_t) clip(d_t, -clip_low, clip_high)) sgn(A_t)
//   L_i = -mean_t(A_t) exp(mean_t c_t)
//
// The widths bound log-ratios, not ratios. Source: arXiv 2507.20673; 0.4 and
// 0.4. L_i weighs what the reduction gives its sequence as a whole: 1 / S under
// seq-mean-token-mean. verl divides by all rows of a batch, also by those
// without a policy token; we do when `totals` counts them.
// Importance weights enter by their geometric mean, as in verl.
#ifndef PACE_TRAIN_LOSS_GEOMETRIC_MEAN_H_
#define PACE_TRAIN_LOSS_GEOMETRIC_MEAN_H_

#include "train/loss/losses.h"

namespace pace {

struct GeometricMeanOptions {
  // The log-ratio of a token counts from -clip_low ...
  double clip_low = 0.4;
  // ... to clip_high.
  double clip_high = 0.4;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class GeometricMeanLoss final : public PolicyLoss {
 public:
  using Options = GeometricMeanOptions;
  // REQUIRES: options.Validate().ok()
  explicit GeometricMeanLoss(const GeometricMeanOptions& options) : options_(options) {}

  ReductionMode paper_reduction() const override { return ReductionMode::kSequenceMeanTokenMean; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const GeometricMeanOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_GEOMETRIC_MEAN_H_
