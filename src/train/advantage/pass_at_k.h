// Pass@k: only the best member of a group learns, from its lead.
//
//   best:   A = (largest - second largest) / (deviation + epsilon)
//   others: A = 0
//
// The first of several best members counts as the best; its lead is 0.
// A group needs two members. Source: arXiv 2503.19595.
#ifndef PACE_TRAIN_ADVANTAGE_PASS_AT_K_H_
#define PACE_TRAIN_ADVANTAGE_PASS_AT_K_H_

#include "train/advantage/advantages.h"
#include "train/advantage/grpo.h"

namespace pace {

class PassAtKAdvantage final : public AdvantageEstimator {
 public:
  using Options = GrpoOptions;
  // REQUIRES: options.Validate().ok()
  explicit PassAtKAdvantage(const GrpoOptions& options) : options_(options) {}
  bool equal_rewards_give_zero() const override { return true; }

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;

 private:
  const GrpoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_PASS_AT_K_H_
