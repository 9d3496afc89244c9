#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(ToprTest, SuccessesAreLearnedWhoeverSampledThem) {
  const LossResult result = LossOf("topr", {}, {0.001, 1000}, {1, 1});
  EXPECT_NEAR(result.gradient[0], -1, 1e-12);
  EXPECT_NEAR(result.gradient[1], -1, 1e-12);
}

TEST(ToprTest, FailuresAreForgottenOnlyAsFarAsTheyStillOccur) {
  const LossResult result = LossOf("topr", {}, {0.25, 4}, {-1, -1});
  EXPECT_NEAR(result.gradient[0], 0.25, 1e-12);
  EXPECT_NEAR(result.gradient[1], 1, 1e-12);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction"), 0.5);
}

TEST(ToprTest, ThePaperTakesTheRatioOfTheSequenceAndRollThatOfTheToken) {
  const LossResult paper = LossOf("topr", {}, {0.5, 0.5}, {-1, -1}, true);
  EXPECT_NEAR(paper.gradient[0], 0.25, 1e-12);
  const LossResult roll = LossOf("topr", {{"level", "token"}}, {0.5, 0.5}, {-1, -1}, true);
  EXPECT_NEAR(roll.gradient[0], 0.5, 1e-12);
}

}  // namespace
}  // namespace pace
