// REINFORCE++: discounted returns, standardised over the whole batch.
//
//   reinforce_plus_plus            G_t = r_t + gamma G_{t+1} over policy tokens
//                                  A_t = standardised G_t
//   reinforce_plus_plus_baseline   A   = standardised (R - mean of its group)
//
// Standardised over all policy tokens of the batch. Rewards are per token (an
// outcome on the last one, a KL penalty on each). Returns cross tool output; in
// verl before #7300 the running return was lost there, so that an outcome never
// reached the turns before the last (`cross_masked: false`).
// With fewer than two policy tokens verl fails; here advantages are 0, or with
// `compat` an error.
//
// Source: arXiv 2501.03262. The variant with a baseline fixes gamma to 1, and a
// group of one has the mean 0, as in verl.
#ifndef PACE_TRAIN_ADVANTAGE_REINFORCE_PLUS_PLUS_H_
#define PACE_TRAIN_ADVANTAGE_REINFORCE_PLUS_PLUS_H_

#include "train/advantage/advantages.h"

namespace pace {

struct ReinforcePlusPlusOptions {
  // Discount per policy token.
  double gamma = 1;
  // Whether returns pass over tokens that the policy only read.
  bool cross_masked = true;
  // Fail as verl does where there is nothing to standardise.
  bool compat = false;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class ReinforcePlusPlusAdvantage final : public AdvantageEstimator {
 public:
  using Options = ReinforcePlusPlusOptions;
  // REQUIRES: options.Validate().ok()
  explicit ReinforcePlusPlusAdvantage(const Options& options) : options_(options) {}

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;

 private:
  const Options options_;
};

struct ReinforceBaselineOptions {
  bool compat = false;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const { return Status::Ok(); }
};

class ReinforceBaselineAdvantage final : public AdvantageEstimator {
 public:
  using Options = ReinforceBaselineOptions;
  explicit ReinforceBaselineAdvantage(const Options& options) : options_(options) {}

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;

 private:
  const Options options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_REINFORCE_PLUS_PLUS_H_
