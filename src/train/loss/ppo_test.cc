#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

const NamedSettings kDapo = {{"clip_low", "0.2"}, {"clip_high", "0.28"}, {"dual_clip", "10"}};

TEST(PpoTest, AGoodTokenStopsAtTheUpperClip) {
  const LossResult result = LossOf("ppo", kDapo, {1.2, 1.3}, {1, 1});
  EXPECT_NEAR(result.loss, -1.2 - 1.28, 1e-12);
  EXPECT_NEAR(result.gradient[0], -1.2, 1e-12);
  EXPECT_EQ(result.gradient[1], 0);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction"), 0.5);
}

TEST(PpoTest, ABadTokenStopsAtTheLowerClip) {
  const LossResult result = LossOf("ppo", kDapo, {0.9, 0.7}, {-1, -1});
  EXPECT_NEAR(result.loss, 0.9 + 0.8, 1e-12);
  EXPECT_NEAR(result.gradient[0], 0.9, 1e-12);
  EXPECT_EQ(result.gradient[1], 0);
}

TEST(PpoTest, ABadTokenThatGrewStopsAtTheDualClip) {
  const LossResult result = LossOf("ppo", kDapo, {9, 11}, {-1, -1});
  EXPECT_NEAR(result.loss, 9 + 10, 1e-12);
  EXPECT_NEAR(result.gradient[0], 9, 1e-12);
  EXPECT_EQ(result.gradient[1], 0);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction_lower"), 0.5);
}

TEST(PpoTest, WithoutADualClipABadTokenHasNoUpperBound) {
  EXPECT_NEAR(LossOf("ppo", {}, {1000}, {-1}).loss, 1000, 1e-9);
}

TEST(PpoTest, ALogRatioBeyondItsBoundHasNoGradient) {
  const LossResult result = LossOf("ppo", {{"max_log_ratio", "1"}}, {10}, {-1});
  EXPECT_NEAR(result.loss, std::exp(1), 1e-12);
  EXPECT_EQ(result.gradient[0], 0);
}

TEST(PpoTest, DapoDiffersByItsUpperWidth) {
  EXPECT_NEAR(LossOf("dapo", {}, {2}, {1}).loss, -1.28, 1e-12);
  EXPECT_NEAR(LossOf("ppo", {}, {2}, {1}).loss, -1.2, 1e-12);
}

TEST(PpoTest, OptionsThatBreakARuleAreNamed) {
  EXPECT_EQ(MakePolicyLoss("ppo", {{"dual_clip", "1"}}).status().message(),
            "ppo.dual_clip = 1: must be > 1 (a ratio; none turns it off)");
  EXPECT_EQ(MakePolicyLoss("ppo", {{"clip_low", "-1"}}).status().message(),
            "ppo.clip_low = -1: must be >= 0");
}

}  // namespace
}  // namespace pace
