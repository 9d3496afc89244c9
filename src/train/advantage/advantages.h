// AdvantageEstimator: from rewards to the advantage of every token.
//
// Estimators see the whole batch of a step: groups are complete, and those that
// standardise do so over all its policy tokens. Advantages are 0 where the mask
// is 0.
//
//   Result<std::unique_ptr<AdvantageEstimator>> grpo = MakeAdvantageEstimator("grpo");
//   Result<Advantages> advantages = (*grpo)->Estimate({.layout = layout, .rewards = rewards});
//   batch.advantages = advantages->advantages;
//
// A new estimator is one header and source beside this file and one line in
// advantages.cc; advantages_test.cc then checks its masks and its order.
//
// Thread-safety: estimators are immutable; Estimate is const and pure.
#ifndef PACE_TRAIN_ADVANTAGE_ADVANTAGES_H_
#define PACE_TRAIN_ADVANTAGE_ADVANTAGES_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "train/option_reader.h"
#include "train/token_batch.h"

namespace pace {

struct RewardBatch {
  SequenceLayout layout = {};
  // The outcome of each sequence.
  std::span<const double> rewards = {};
  // Per token, for estimators that discount; empty: each sequence's reward
  // stands on its last policy token. With a KL penalty inside the reward, this
  // is where it goes.
  std::span<const double> token_rewards = {};
  // The value head's output per token, for `gae`.
  std::span<const double> values = {};
  // The reward of a greedy response per sequence, for `remax`.
  std::span<const double> baselines = {};

  [[nodiscard]] Status Validate() const;
};

struct Advantages {
  std::vector<double> advantages = {};  // per token
  // What a value head is trained towards; 0 where the mask is 0.
  std::vector<double> returns = {};
};

struct AdvantageInputs {
  bool values = false;
  bool baselines = false;
};

class AdvantageEstimator {
 public:
  virtual ~AdvantageEstimator() = default;

  Result<Advantages> Estimate(const RewardBatch& batch) const;

  virtual AdvantageInputs inputs() const { return {}; }
  // A group of two or more equal rewards gets advantages of exactly 0.
  virtual bool equal_rewards_give_zero() const { return false; }

 protected:
  // REQUIRES: lengths agree, the inputs are there
  virtual Result<Advantages> Compute(const RewardBatch& batch) const = 0;
};

// An unknown name or setting is an error that lists what there is.
Result<std::unique_ptr<AdvantageEstimator>> MakeAdvantageEstimator(
    std::string_view name, const NamedSettings& settings = {});

// The names of all estimators, in alphabetical order.
std::span<const std::string_view> AdvantageEstimatorNames();

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_ADVANTAGES_H_
