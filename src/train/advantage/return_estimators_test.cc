// Estimators that carry rewards back over a sequence.
#include <gtest/gtest.h>

#include <cmath>

#include "train/advantage/rewarded_sequences.h"

namespace pace {
namespace {

// A turn, tool output, another turn.
const RewardedSequences kTwoTurns = {.masks = {{1, 0, 0, 1}, {1, 1}}, .rewards = {1, 0}};

TEST(ReinforcePlusPlusTest, ReturnsCrossToolOutput) {
  const Result<Advantages> result = kTwoTurns.Estimate("reinforce_plus_plus");
  ExpectNear(result->returns, {1, 0, 0, 1, 0, 0});
  // Over {1, 1, 0, 0}: mean 1/2, unbiased variance 1/3.
  const double a = 0.5 * std::sqrt(3);
  ExpectNear(result->advantages, {a, 0, 0, a, -a, -a});
}

TEST(ReinforcePlusPlusTest, TheOldRuleLosesThemThere) {
  const Result<Advantages> result =
      kTwoTurns.Estimate("reinforce_plus_plus", {{"cross_masked", "false"}});
  ExpectNear(result->returns, {0, 0, 0, 1, 0, 0});
}

TEST(ReinforcePlusPlusTest, OnlyPolicyTokensDiscount) {
  const Result<Advantages> result = kTwoTurns.Estimate("reinforce_plus_plus", {{"gamma", "0.5"}});
  ExpectNear(result->returns, {0.5, 0, 0, 1, 0, 0});
}

TEST(ReinforcePlusPlusTest, ASingleTokenGivesZeroAndInCompatAnError) {
  const RewardedSequences one = {.masks = {{0, 0, 1}}, .rewards = {1}};
  ExpectNear(one.Of("reinforce_plus_plus"), {0, 0, 0});
  EXPECT_FALSE(one.Estimate("reinforce_plus_plus", {{"compat", "true"}}).ok());
  EXPECT_FALSE(one.Estimate("reinforce_plus_plus_baseline", {{"compat", "true"}}).ok());
}

TEST(ReinforcePlusPlusTest, TheBaselineIsTheGroupsMean) {
  const RewardedSequences sequences = {
      .masks = {{1}, {1}, {1}, {1}}, .rewards = {1, 3, 10, 12}, .groups = {1, 1, 2, 2}};
  const double a = std::sqrt(3.0 / 4);
  ExpectNear(sequences.Of("reinforce_plus_plus_baseline"), {-a, a, -a, a});
}

// Standardised over the batch, one group of equal rewards is not 0; a batch is.
TEST(ReinforcePlusPlusTest, ABatchOfEqualRewardsGetsExactlyZero) {
  const RewardedSequences sequences = {.masks = {{1, 1}, {1}, {0, 1}, {1, 1, 1}},
                                       .rewards = {-0.1, -0.1, -0.1, -0.1},
                                       .groups = {1, 1, 1, 2}};
  for (const double advantage : sequences.Of("reinforce_plus_plus")) EXPECT_EQ(advantage, 0);
  RewardedSequences two_groups = sequences;
  two_groups.rewards = {-0.1, -0.1, -0.1, 0.7};
  two_groups.masks.push_back({1});
  two_groups.rewards.push_back(0.7);
  two_groups.groups.push_back(2);
  for (const double advantage : two_groups.Of("reinforce_plus_plus_baseline")) {
    EXPECT_EQ(advantage, 0);
  }
}

TEST(GaeTest, DeltasPassOverToolOutput) {
  RewardedSequences sequences = kTwoTurns;
  sequences.values = {0.5, 99, 99, 0.25, 0, 0};
  const NamedSettings settings = {{"lambda", "0.5"}, {"standardize", "false"}};
  const Result<Advantages> result = sequences.Estimate("gae", settings);
  // Last: 1 - 0.25. First: 0.25 - 0.5 + 0.5 * 0.75.
  ExpectNear(result->advantages, {0.125, 0, 0, 0.75, 0, 0});
  ExpectNear(result->returns, {0.625, 0, 0, 1, 0, 0});
}

TEST(GaeTest, LambdaMayGrowWithTheLength) {
  RewardedSequences sequences = {.masks = {{1, 1}}, .rewards = {1}};
  sequences.values = {0, 0};
  // 1 - 1 / (1.5 * 2) = 2/3
  ExpectNear(sequences.Of("gae", {{"length_factor", "1.5"}, {"standardize", "false"}}),
             {2.0 / 3, 1});
}

TEST(GaeTest, ReturnsMayHaveALambdaOfTheirOwn) {
  RewardedSequences sequences = kTwoTurns;
  sequences.values = {0.5, 99, 99, 0.25, 0, 0};
  const NamedSettings settings = {
      {"lambda", "0.5"}, {"returns_lambda", "1"}, {"standardize", "false"}};
  const Result<Advantages> result = sequences.Estimate("gae", settings);
  ExpectNear(result->advantages, {0.125, 0, 0, 0.75, 0, 0});
  ExpectNear(result->returns, {1, 0, 0, 1, 0, 0});
  EXPECT_FALSE(sequences.Estimate("gae", {{"returns_lambda", "2"}}).ok());
}

TEST(RemaxTest, ReturnsAreComparedWithTheGreedyResponse) {
  RewardedSequences sequences = kTwoTurns;
  sequences.baselines = {0.25, -1};
  ExpectNear(sequences.Of("remax"), {0.75, 0, 0, 0.75, 1, 1});
}

TEST(RemaxTest, ARewardEqualToItsBaselineGivesExactlyZero) {
  RewardedSequences sequences = kTwoTurns;
  sequences.rewards = {0.1, -0.9};
  sequences.baselines = sequences.rewards;
  for (const double advantage : sequences.Of("remax")) EXPECT_EQ(advantage, 0);
}

}  // namespace
}  // namespace pace
