#include "train/batch_advantages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/math/kl_penalty.h"

namespace pace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A response of these masks; its recorded log-probs are -1.
TrainSequence Response(std::vector<uint8_t> mask, double reward, int64_t group = 0) {
  TrainSequence sequence;
  sequence.tokens.assign(mask.size() + 1, 0);
  sequence.num_prompt_tokens = 1;
  sequence.rollout_logprobs.assign(mask.size(), -1.0F);
  sequence.versions.assign(mask.size(), 0);
  sequence.mask = std::move(mask);
  sequence.group = group;
  sequence.reward = reward;
  return sequence;
}

TEST(ShapeRewardsTest, EveryTokenPaysAndTheLastEarns) {
  const TrainSequence one = Response({1, 0, 1}, 1);
  const TrainSequence two = Response({1}, -2);
  Minibatch batch({&one, &two});
  batch.initial_logprobs = {-1.5, kNan, -2, 0};
  MetricList metrics;
  const Result<double> kl =
      ShapeRewards(*KlPenaltyFromName("k1"), 0.1, RatioReference::kRollout, batch, metrics);
  ASSERT_TRUE(kl.ok()) << kl.status().message();
  ASSERT_EQ(batch.token_rewards.size(), 4U);
  EXPECT_DOUBLE_EQ(batch.token_rewards[0], -0.05);
  EXPECT_EQ(batch.token_rewards[1], 0);
  EXPECT_DOUBLE_EQ(batch.token_rewards[2], 0.9);
  EXPECT_DOUBLE_EQ(batch.token_rewards[3], -1.9);
  EXPECT_DOUBLE_EQ(batch.shaped_rewards[0], 0.85);
  EXPECT_DOUBLE_EQ(batch.shaped_rewards[1], -1.9);
  EXPECT_EQ(batch.rewards, (std::vector<double>{1, -2}));
  EXPECT_DOUBLE_EQ(*kl, (0.75 - 1) / 2);  // of the means 0.75 and -1
  EXPECT_DOUBLE_EQ(FindMetric(metrics, "train/kl_reward")->value, 0.5 / 3);
}

TEST(ShapeRewardsTest, AMissingArrayIsNamed) {
  const TrainSequence one = Response({1}, 1);
  Minibatch batch({&one});
  MetricList metrics;
  const Result<double> kl = ShapeRewards({}, 0.1, RatioReference::kRollout, batch, metrics);
  ASSERT_FALSE(kl.ok());
  EXPECT_NE(kl.status().message().find("initial_logprobs"), std::string::npos);
}

TEST(ShapeRewardsTest, PartsOfABatchKeepTheirRewards) {
  const TrainSequence one = Response({1, 1}, 1);
  const TrainSequence two = Response({1}, -2);
  Minibatch batch({&one, &two});
  batch.initial_logprobs = {-1.5, -1.5, 0};
  MetricList metrics;
  ASSERT_TRUE(
      ShapeRewards(*KlPenaltyFromName("k1"), 0.1, RatioReference::kRollout, batch, metrics).ok());
  const std::vector<size_t> second = {1};
  const Minibatch part = batch.Part(second);
  EXPECT_EQ(part.shaped_rewards, (std::vector<double>{batch.shaped_rewards[1]}));
  EXPECT_EQ(part.token_rewards, (std::vector<double>{batch.token_rewards[2]}));
  EXPECT_EQ(part.initial_logprobs, (std::vector<double>{0}));
}

TEST(EstimateAdvantagesTest, TheExplainedVarianceIsThatOfTheOldValues) {
  const TrainSequence one = Response({1, 1}, 1);
  const TrainSequence two = Response({1, 1}, 0);
  const auto gae = MakeAdvantageEstimator("gae", {{"standardize", "false"}});
  const auto explained = [&](std::vector<double> values) {
    Minibatch batch({&one, &two});
    batch.values = std::move(values);
    MetricList metrics;
    EXPECT_TRUE(EstimateAdvantages(**gae, batch, metrics).ok());
    return FindMetric(metrics, "train/explained_variance")->value;
  };
  EXPECT_DOUBLE_EQ(explained({1, 1, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(explained({5, 5, 5, 5}), 0);
  EXPECT_DOUBLE_EQ(explained({0.5, 0.5, 0, 0}), 0.75);
}

TEST(OffPolicyBaselineTest, WeightsThatWouldOverflowStillGiveABaseline) {
  const TrainSequence one = Response({1}, 1);
  const TrainSequence two = Response({1}, 0);
  Minibatch batch({&one, &two});
  batch.advantages = {7, 7};
  const std::vector<double> norms = {1, 1};
  const std::vector<double> logprobs = {2000, 2000 - std::log(2)};  // w and w / 2
  MetricList metrics;
  ASSERT_TRUE(ApplyOffPolicyBaseline({}, norms, logprobs, batch, metrics).ok());
  EXPECT_NEAR(batch.advantages[0], 0.2, 1e-7);  // b = 1 / (1 + 1/4)
  EXPECT_NEAR(batch.advantages[1], -0.8, 1e-7);
  EXPECT_NEAR(FindMetric(metrics, "train/opob_baseline")->value, 0.8, 1e-7);
  // Bounded at 1, both weigh the same.
  ASSERT_TRUE(ApplyOffPolicyBaseline({.max_weight = 1}, norms, logprobs, batch, metrics).ok());
  EXPECT_NEAR(batch.advantages[0], 0.5, 1e-7);
}

TEST(OffPolicyBaselineTest, OverAMinibatchOneBaselineGoesOffTheAdvantages) {
  const TrainSequence one = Response({1, 1}, 1, 0);
  const TrainSequence two = Response({1, 0}, 0, 1);
  Minibatch batch({&one, &two});
  batch.advantages = {2, 4, -1, 0};
  MetricList metrics;
  const OpobOptions options = {.scope = OpobOptions::Scope::kMinibatch, .use_weights = false};
  ASSERT_TRUE(ApplyOffPolicyBaseline(options, std::vector<double>{1, 1},
                                     std::vector<double>(4, -1.0), batch, metrics)
                  .ok());
  EXPECT_NEAR(batch.advantages[0], 1, 1e-7);  // the mean of 3 and -1 is 1
  EXPECT_NEAR(batch.advantages[1], 3, 1e-7);
  EXPECT_NEAR(batch.advantages[2], -2, 1e-7);
  EXPECT_EQ(batch.advantages[3], 0);
}

TEST(KlControllerTest, ErrorsAreBoundedAndNothingBreaksIt) {
  const KlControllerOptions options = {.target = 0.1, .horizon = 100};
  EXPECT_EQ(NextKlCoefficient(0.5, 3, 10, {}), 0.5);
  EXPECT_DOUBLE_EQ(NextKlCoefficient(0.5, 0.11, 10, options), 0.5 * 1.01);
  EXPECT_DOUBLE_EQ(NextKlCoefficient(0.5, 3, 10, options), 0.5 * 1.02);
  EXPECT_DOUBLE_EQ(NextKlCoefficient(0.5, -3, 10, options), 0.5 * 0.98);
  EXPECT_EQ(NextKlCoefficient(0.5, kNan, 10, options), 0.5);
  EXPECT_EQ(NextKlCoefficient(0.5, 0, 10'000, options), 0);
}

}  // namespace
}  // namespace pace
