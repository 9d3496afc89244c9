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
// A new estimator is a source beside this file, a line below and in advantages.cc, and
// its options in config/advantage_options.h; advantages_test.cc then checks its masks
// and its order.
//
// Thread-safety: estimators are immutable; Estimate is const and pure.
#ifndef PACE_TRAIN_ADVANTAGE_ADVANTAGES_H_
#define PACE_TRAIN_ADVANTAGE_ADVANTAGES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "config/advantage_options.h"
#include "core/status.h"
#include "train/math/token_batch.h"

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

struct AdvantageTraits {
  AdvantageInputs inputs = {};
  // A group of two or more equal rewards gets advantages of exactly 0.
  bool equal_rewards_give_zero = false;
};

class AdvantageEstimator {
 public:
  // REQUIRES: lengths agree, the inputs are there
  using Compute = std::function<Result<Advantages>(const RewardBatch& batch)>;

  explicit AdvantageEstimator(Compute compute, const AdvantageTraits& traits = {})
      : compute_(std::move(compute)), traits_(traits) {}

  Result<Advantages> Estimate(const RewardBatch& batch) const;

  const AdvantageInputs& inputs() const { return traits_.inputs; }
  bool equal_rewards_give_zero() const { return traits_.equal_rewards_give_zero; }

 private:
  Compute compute_;
  AdvantageTraits traits_;
};

// An option that breaks a rule is an error.
Result<std::unique_ptr<AdvantageEstimator>> MakeAdvantageEstimator(const AdvantageOptions& options);
// By name; an unknown name or option is an error that names the nearest.
Result<std::unique_ptr<AdvantageEstimator>> MakeAdvantageEstimator(
    std::string_view name, const NamedSettings& settings = {});

// Each in its own source, where its formula stands. REQUIRES: valid options
AdvantageEstimator GaeAdvantage(const GaeOptions& options);
AdvantageEstimator GpgAdvantage(const GpgOptions& options);
AdvantageEstimator GrpoAdvantage(const GrpoOptions& options);
AdvantageEstimator OpoAdvantage();
AdvantageEstimator PassAtKAdvantage(const GrpoOptions& options);
AdvantageEstimator ReinforcePlusPlusAdvantage(const ReinforcePlusPlusOptions& options);
AdvantageEstimator ReinforceBaselineAdvantage(const ReinforceBaselineOptions& options);
AdvantageEstimator RemaxAdvantage();
AdvantageEstimator RlooAdvantage(const RlooOptions& options);

// What they share.

// Mean and deviation of a group's rewards.
struct GroupStatistics {
  double mean = 0;
  double deviation = 0;  // unbiased (n - 1); 0 for one member
  // All are the same number: differences from the mean are exactly 0, which
  // subtracting a rounded mean would not give.
  bool equal = false;
};
GroupStatistics StatisticsOf(std::span<const size_t> members, std::span<const double> rewards);

// The advantage of each sequence, given to all its policy tokens; returns are
// the same.
Advantages Broadcast(const SequenceLayout& layout, std::span<const double> scores);

// token_rewards, or each sequence's reward on its last policy token; 0 where
// the mask is 0.
std::vector<double> TokenRewards(const RewardBatch& batch);

// (x - mean) / sqrt(variance + 1e-8) over all policy tokens, variance unbiased.
// 0 on all where they are equal, or fewer than two.
void Whiten(const SequenceLayout& layout, std::vector<double>& values);

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_ADVANTAGES_H_
