#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(DisTest, OutsideTheBandThereIsNothing) {
  const LossResult result = LossOf("dis", {}, {0.69, 0.71, 5.9, 6.1}, {1, 1, 1, 1});
  EXPECT_EQ(result.gradient[0], 0);
  EXPECT_NEAR(result.gradient[1], -0.71, 1e-12);
  EXPECT_NEAR(result.gradient[2], -5.9, 1e-12);
  EXPECT_EQ(result.gradient[3], 0);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction"), 0.5);
}

TEST(DisTest, TheBandHoldsForBadTokensToo) {
  const LossResult result = LossOf("dis", {}, {0.5, 2, 7}, {-1, -1, -1});
  EXPECT_NEAR(result.loss, 2, 1e-12);
}

}  // namespace
}  // namespace pace
