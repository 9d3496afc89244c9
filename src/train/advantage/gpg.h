// GPG: centred rewards, scaled up for the sequences that taught nothing.
//
//   A = alpha (R - mean of its group) / normalizer,
//   alpha = sequences / sequences whose reward is not 0
//
// over the whole batch. A group of one has the mean 0, as in verl.
// Source: arXiv 2504.02546, where alpha leaves out the samples without a
// gradient; verl leaves out those with a reward of 0, and so do we.
#ifndef PACE_TRAIN_ADVANTAGE_GPG_H_
#define PACE_TRAIN_ADVANTAGE_GPG_H_

#include "train/advantage/advantages.h"

namespace pace {

struct GpgOptions {
  double normalizer = 1;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class GpgAdvantage final : public AdvantageEstimator {
 public:
  using Options = GpgOptions;
  // REQUIRES: options.Validate().ok()
  explicit GpgAdvantage(const GpgOptions& options) : options_(options) {}
  bool equal_rewards_give_zero() const override { return true; }

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;

 private:
  const GpgOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_GPG_H_
