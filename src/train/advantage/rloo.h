// RLOO: each member against the mean of the others.
//
//   A_i = R_i - mean_{j != i} R_j = n / (n - 1) (R_i - mean)
//
// A member without others keeps its reward, or gets 0: verl does the one in its
// loop and the other in its vectorised form. Source: arXiv 2402.14740.
#ifndef PACE_TRAIN_ADVANTAGE_RLOO_H_
#define PACE_TRAIN_ADVANTAGE_RLOO_H_

#include "train/advantage/advantages.h"

namespace pace {

struct RlooOptions {
  enum class Single { kReward, kZero };

  // What a group of one gets.
  Single single = Single::kReward;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const { return Status::Ok(); }
};

class RlooAdvantage final : public AdvantageEstimator {
 public:
  using Options = RlooOptions;
  explicit RlooAdvantage(const RlooOptions& options) : options_(options) {}
  bool equal_rewards_give_zero() const override { return true; }

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;

 private:
  const RlooOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_RLOO_H_
