#include <gtest/gtest.h>

#include <cmath>

#include "train/correction/corrections.h"

namespace pace {
namespace {

const std::vector<double> kRollout = {-1, -1, -1, -1};
const std::vector<double> kTrained = {-2, -2, -2, -2};
// Three steps old, one step old, fresh, and not sampled at all.
const std::vector<int64_t> kVersions = {6, 8, 9, -1};

TEST(ProximalTest, OlderTokensAreFurtherOnTheWay) {
  const std::vector<double> estimate =
      EstimateProximal(ProximalEstimate::kLogLinear, kRollout, kTrained, kVersions, 8, 9);
  EXPECT_NEAR(estimate[0], -1 - 2.0 / 3, 1e-12);
  EXPECT_EQ(estimate[1], -1);
  EXPECT_EQ(estimate[2], -1);
  EXPECT_EQ(estimate[3], -1);
}

TEST(ProximalTest, LinearInterpolatesProbabilities) {
  const std::vector<double> estimate =
      EstimateProximal(ProximalEstimate::kLinear, kRollout, kTrained, kVersions, 8, 9);
  EXPECT_NEAR(std::exp(estimate[0]), std::exp(-1) / 3 + std::exp(-2) * 2 / 3, 1e-9);
}

TEST(ProximalTest, EstimatesHaveNames) {
  EXPECT_EQ(ProximalEstimateFromName("loglinear"), ProximalEstimate::kLogLinear);
  EXPECT_EQ(ProximalEstimateFromName("linear"), ProximalEstimate::kLinear);
  EXPECT_EQ(ProximalEstimateFromName("rollout"), ProximalEstimate::kRollout);
  EXPECT_FALSE(ProximalEstimateFromName("ema").has_value());
}

TEST(ProximalTest, RolloutTakesTheRecordedOnes) {
  EXPECT_EQ(EstimateProximal(ProximalEstimate::kRollout, kRollout, kTrained, kVersions, 8, 9),
            kRollout);
}

}  // namespace
}  // namespace pace
