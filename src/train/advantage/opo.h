// OPO: rewards against a baseline that weighs members by their length.
//
//   b = sum_i n_i R_i / sum_i n_i        A_i = R_i - b
//
// n_i the policy tokens of member i: the baseline of least variance when the
// gradient of a response grows with its length. A group of one has b = 0, as in
// verl. Source: arXiv 2505.23585.
#ifndef PACE_TRAIN_ADVANTAGE_OPO_H_
#define PACE_TRAIN_ADVANTAGE_OPO_H_

#include "train/advantage/advantages.h"

namespace pace {

struct OpoOptions {
  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const { return Status::Ok(); }
};

class OpoAdvantage final : public AdvantageEstimator {
 public:
  using Options = OpoOptions;
  explicit OpoAdvantage(const OpoOptions& /*options*/) {}
  bool equal_rewards_give_zero() const override { return true; }

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_OPO_H_
