#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(GspoTest, AllTokensOfASequenceShareOneRatio) {
  // Ratios 2 and 1/2: their geometric mean is 1, inside every clip.
  const LossResult result = LossOf("gspo", {}, {2, 0.5}, {1, 1}, true);
  EXPECT_NEAR(result.loss, -2, 1e-12);
  EXPECT_NEAR(result.gradient[0], -1, 1e-12);
  EXPECT_NEAR(result.gradient[1], -1, 1e-12);
}

TEST(GspoTest, ASequenceIsClippedAsAWhole) {
  const LossResult result = LossOf("gspo", {}, {1.01, 1}, {1, 1}, true);
  EXPECT_NEAR(result.loss, -2 * 1.0004, 1e-12);
  EXPECT_EQ(result.gradient[0], 0);
  EXPECT_EQ(result.gradient[1], 0);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction"), 1);
}

}  // namespace
}  // namespace pace
