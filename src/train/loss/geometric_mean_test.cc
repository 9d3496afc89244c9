#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(GeometricMeanTest, RatiosMultiply) {
  // Token-sum gives the sequence the weight 2: L = -2 * 1 * sqrt(1.2 * 0.9).
  const LossResult result = LossOf("geometric_mean", {}, {1.2, 0.9}, {1, 1}, true);
  EXPECT_NEAR(result.loss, -2 * std::sqrt(1.08), 1e-12);
  EXPECT_NEAR(result.gradient[0], -std::sqrt(1.08), 1e-12);
}

TEST(GeometricMeanTest, OneClippedTokenLeavesTheOthersTheirGradient) {
  const LossResult result = LossOf("geometric_mean", {}, {10, 1}, {1, 1}, true);
  EXPECT_NEAR(result.loss, -2 * std::exp(0.2), 1e-12);
  EXPECT_EQ(result.gradient[0], 0);
  EXPECT_NEAR(result.gradient[1], -std::exp(0.2), 1e-12);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction"), 0.5);
}

}  // namespace
}  // namespace pace
