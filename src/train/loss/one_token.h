// A batch of a few sequences with numbers that a reader can follow.
#ifndef PACE_TRAIN_LOSS_ONE_TOKEN_H_
#define PACE_TRAIN_LOSS_ONE_TOKEN_H_

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "train/loss/losses.h"

namespace pace {

// One sequence per entry of `ratios`, of one token each, sampled at `rollout`;
// or all tokens in one sequence. Reduced by token-sum.
inline LossResult LossOf(std::string_view name, const NamedSettings& settings,
                         const std::vector<double>& ratios, const std::vector<double>& advantages,
                         bool one_sequence = false, double rollout = -1) {
  std::vector<int64_t> offsets = {0};
  std::vector<double> logprobs;
  for (size_t i = 0; i < ratios.size(); ++i) {
    logprobs.push_back(rollout + std::log(ratios[i]));
    if (!one_sequence) offsets.push_back(static_cast<int64_t>(i) + 1);
  }
  if (one_sequence) offsets.push_back(static_cast<int64_t>(ratios.size()));
  const std::vector<uint8_t> mask(ratios.size(), 1);
  const std::vector<double> rollout_logprobs(ratios.size(), rollout);
  // A sequence's reward has the sign of its first advantage.
  std::vector<double> rewards(offsets.size() - 1);
  for (size_t i = 0; i < rewards.size(); ++i) rewards[i] = advantages[i];
  TokenBatch batch;
  batch.layout = {.offsets = offsets, .mask = mask};
  batch.logprobs = logprobs;
  batch.rollout_logprobs = rollout_logprobs;
  batch.proximal_logprobs = rollout_logprobs;
  batch.advantages = advantages;
  batch.rewards = rewards;
  const Result<ReductionWeights> weights =
      WeighTokens(batch.layout, CountTotals(batch.layout), {.mode = ReductionMode::kTokenSum});
  const auto loss = MakePolicyLoss(name, settings);
  EXPECT_TRUE(loss.ok()) << loss.status().message();
  const Result<LossResult> result = (*loss)->Evaluate(batch, *weights);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result;
}

inline double MetricOf(const LossResult& result, const std::string& name) {
  const Metric* metric = FindMetric(result.metrics, name);
  EXPECT_NE(metric, nullptr) << name;
  return metric == nullptr ? 0 : metric->value;
}

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_ONE_TOKEN_H_
