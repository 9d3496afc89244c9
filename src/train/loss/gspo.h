// GSPO: the clipped surrogate with one ratio per sequence.
//
//   s_i     = exp(mean_t (log pi_theta - log pi_reference))
//   s_{i,t} = sg(s_i) pi_theta(y_t) / sg(pi_theta(y_t))
//   L_t     = max(-A s_{i,t}, -A clip(s_{i,t}, 1 - clip_low, 1 + clip_high))
//
// Source: arXiv 2507.18071, its token form, whose gradient is that of the
// sequence form where the advantage is the same for all tokens; reduced by
// seq-mean-token-mean. verl bounds log s from above by 10, which no paper has.
#ifndef PACE_TRAIN_LOSS_GSPO_H_
#define PACE_TRAIN_LOSS_GSPO_H_

#include "train/loss/losses.h"

namespace pace {

struct GspoOptions {
  // Widths of the clip; a mean over tokens moves far less than one token.
  double clip_low = 3e-4;
  double clip_high = 4e-4;
  // log s above this is cut, gradient included.
  double max_log_ratio = 10;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class GspoLoss final : public PolicyLoss {
 public:
  using Options = GspoOptions;
  // REQUIRES: options.Validate().ok()
  explicit GspoLoss(const GspoOptions& options) : options_(options) {}

  ReductionMode paper_reduction() const override { return ReductionMode::kSequenceMeanTokenMean; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const GspoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_GSPO_H_
