// What VCPO adds: a learning rate from the effective sample size, and OPOB.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/correction/corrections.h"
#include "train/test_batch.h"

namespace pace {
namespace {

// One token per sequence with these log-weights.
EssLearningRate Scale(const std::vector<double>& log_weights,
                      const EssLearningRateOptions& options) {
  std::vector<int64_t> offsets = {0};
  for (size_t i = 0; i < log_weights.size(); ++i) offsets.push_back(static_cast<int64_t>(i) + 1);
  const std::vector<uint8_t> mask(log_weights.size(), 1);
  const std::vector<double> rollout(log_weights.size(), 0.0);
  return *ScaleLearningRate({.offsets = offsets, .mask = mask}, log_weights, rollout, options);
}

TEST(EffectiveSampleSizeTest, EqualWeightsOfAnySizeCountFully) {
  for (const double log_weight : {-1000.0, -18.0, 0.0, 900.0}) {
    const std::vector<double> weights(5, log_weight);
    EXPECT_EQ(EffectiveSampleRatio(weights), 1) << log_weight;
  }
}

TEST(EffectiveSampleSizeTest, OneOverwhelmingWeightCountsAlone) {
  const std::vector<double> weights = {0, 0, 500, 0};
  EXPECT_NEAR(EffectiveSampleRatio(weights), 0.25, 1e-12);
}

TEST(EssLearningRateTest, TheRateFallsWithTheSquareRootOrLinearly) {
  const std::vector<double> log_weights = {std::log(3), 0};  // (3 + 1)^2 / (2 * 10)
  EXPECT_NEAR(Scale(log_weights, {}).scale, std::sqrt(0.8), 1e-12);
  EXPECT_NEAR(Scale(log_weights, {.rule = EssLearningRateOptions::Rule::kLinear}).scale, 0.8,
              1e-12);
  EXPECT_EQ(Scale(log_weights, {.base_ratio = 0.5}).scale, 1);
}

TEST(EssLearningRateTest, BoundedWeightsCanDecideIt) {
  const EssLearningRateOptions options = {.max_weight = 1, .bounded = true};
  EXPECT_EQ(Scale({50, 0}, options).scale, 1);
}

TEST(EssLearningRateTest, TheMostOffPolicyBatchGetsTheSmallestRateNotTheFull) {
  EXPECT_NEAR(Scale({120, 0}, {}).scale, std::sqrt(0.5), 1e-12);
  EXPECT_EQ(Scale({120, 0}, {.compat = true}).scale, 1);
}

TEST(EssLearningRateTest, EqualTinyWeightsKeepLearning) {
  EXPECT_EQ(Scale({-17.5, -17.5, -17.5}, {}).scale, 1);
  EXPECT_LT(Scale({-17.5, -17.5, -17.5}, {.compat = true}).scale, 1e-3);
}

TEST(EssLearningRateTest, MaskedTokensNeverMatterEvenWhenNaN) {
  BatchData data = RandomBatch(3);
  const auto plain = ScaleLearningRate(data.layout(), data.logprobs, data.rollout_logprobs, {});
  FillMasked(data, std::numeric_limits<double>::quiet_NaN());
  const auto poisoned = ScaleLearningRate(data.layout(), data.logprobs, data.rollout_logprobs, {});
  EXPECT_EQ(plain->log_weights, poisoned->log_weights);
  EXPECT_EQ(plain->scale, poisoned->scale);
  EXPECT_LT(plain->scale, 1);
}

TEST(EssLearningRateTest, SettingsAreReadByName) {
  EssLearningRateOptions options;
  const NamedSettings settings = {{"rule", "linear"}, {"max_weight", "8"}, {"bounded", "true"}};
  ASSERT_TRUE(SetFields(options.Fields(), settings, "ess").ok());
  EXPECT_EQ(options.rule, EssLearningRateOptions::Rule::kLinear);
  EXPECT_EQ(options.max_weight, 8);
  EXPECT_TRUE(options.bounded);
}

struct Trajectories {
  std::vector<int64_t> groups = {4, 4, 9};
  std::vector<double> rewards = {1, 0, 5};
  std::vector<double> advantages = {2, 0, -1};
  std::vector<double> norms = {1, 2, 3};
  std::vector<double> weights = {3, 0.5, 1};
  std::vector<int64_t> lengths = {1, 2, 1};

  OpobResult Baseline(const OpobOptions& options) const {
    return *OffPolicyBaseline({.groups = groups,
                               .rewards = rewards,
                               .advantages = advantages,
                               .gradient_norms = norms,
                               .weights = weights,
                               .lengths = lengths},
                              options);
  }
};

TEST(OpobTest, TheBaselineWeighsRewardsBySquaredNorms) {
  // W = 9 and 1 in the first group.
  const OpobResult result = Trajectories().Baseline({});
  EXPECT_NEAR(result.baselines[0], 0.9, 1e-8);
  EXPECT_NEAR(result.baselines[2], 5, 1e-8);
  EXPECT_NEAR(result.coefficients[1], -0.9, 1e-8);
}

TEST(OpobTest, CoefficientsCanBeStandardised) {
  // Population deviation of {1, 0} is 1/2; a single reward has none.
  const OpobResult result = Trajectories().Baseline({.standardize = true});
  EXPECT_NEAR(result.coefficients[0], 0.2, 1e-7);
  EXPECT_NEAR(result.coefficients[2], 0, 1e-7);
}

TEST(OpobTest, MinibatchScopeUsesAdvantagesAndOneBaseline) {
  const OpobResult result =
      Trajectories().Baseline({.scope = OpobOptions::Scope::kMinibatch, .use_weights = false});
  // (1 * 2 + 4 * 0 + 9 * -1) / 14
  for (const double baseline : result.baselines) EXPECT_NEAR(baseline, -0.5, 1e-8);
}

TEST(OpobTest, TheMedianIsWeightedToo) {
  const OpobResult result =
      Trajectories().Baseline({.aggregation = OpobOptions::Aggregation::kMedian});
  EXPECT_EQ(result.baselines[0], 1);
}

TEST(OpobTest, AGroupOfEqualRewardsContributesNothing) {
  using Aggregation = OpobOptions::Aggregation;
  Trajectories trajectories;
  trajectories.rewards = {-0.1, -0.1, 5};
  for (const Aggregation aggregation :
       {Aggregation::kMean, Aggregation::kMedian, Aggregation::kWinsorizedMean}) {
    const OpobResult result = trajectories.Baseline({.aggregation = aggregation});
    EXPECT_EQ(result.coefficients[0], 0);
    EXPECT_EQ(result.coefficients[1], 0);
  }
}

TEST(OpobTest, SettingsAreReadByName) {
  OpobOptions options;
  const NamedSettings settings = {{"scope", "minibatch"}, {"aggregation", "median"}};
  ASSERT_TRUE(SetFields(options.Fields(), settings, "opob").ok());
  EXPECT_EQ(options.scope, OpobOptions::Scope::kMinibatch);
  EXPECT_EQ(options.aggregation, OpobOptions::Aggregation::kMedian);
}

TEST(OpobTest, WithoutGradientsThereIsNoBaseline) {
  Trajectories trajectories;
  trajectories.norms = {0, 0, 0};
  const OpobResult result = trajectories.Baseline({});
  for (const double baseline : result.baselines) EXPECT_EQ(baseline, 0);
}

}  // namespace
}  // namespace pace
