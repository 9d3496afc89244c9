// GRPO: rewards standardised within their group; Dr.GRPO: only centred.
//
//   grpo      A = (R - mean) / (deviation + epsilon)
//   dr_grpo   A = R - mean
//
// over the members of a group, deviation unbiased, given to all policy tokens.
// A group of one keeps its reward (mean 0, deviation 1), as in verl. A group of
// equal rewards gets exactly 0: in float32 a rounded mean over epsilon has given
// up to 0.23 where it should give nothing.
//
// Source: DeepSeekMath (arXiv 2402.03300); Dr.GRPO (2503.20783), which pairs it
// with the reduction seq-mean-token-sum-norm.
#ifndef PACE_TRAIN_ADVANTAGE_GRPO_H_
#define PACE_TRAIN_ADVANTAGE_GRPO_H_

#include "train/advantage/advantages.h"

namespace pace {

struct GrpoOptions {
  // false: Dr.GRPO.
  bool standardize = true;
  // Added to the deviation.
  double epsilon = 1e-6;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class GrpoAdvantage final : public AdvantageEstimator {
 public:
  using Options = GrpoOptions;
  // REQUIRES: options.Validate().ok()
  explicit GrpoAdvantage(const GrpoOptions& options) : options_(options) {}
  bool equal_rewards_give_zero() const override { return true; }

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;

 private:
  const GrpoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_GRPO_H_
