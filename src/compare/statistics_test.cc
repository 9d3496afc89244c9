#include "compare/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace pace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(StatisticsTest, KnowsMeansAndTheirIntervals) {
  const std::array<double, 4> values = {1, 2, 3, 4};
  const Estimate estimate = EstimateOf(values);
  EXPECT_EQ(estimate.mean, 2.5);
  // t(3) s / sqrt(n), s = sqrt(5 / 3).
  EXPECT_NEAR(estimate.half_width, 3.1824 * std::sqrt(5.0 / 3) / 2, 1e-4);
}

TEST(StatisticsTest, OneValueSaysNothingAboutItsSpread) {
  const std::array<double, 1> one = {3};
  EXPECT_EQ(EstimateOf(one).mean, 3);
  EXPECT_TRUE(std::isinf(EstimateOf(one).half_width));
  EXPECT_EQ(Against(EstimateOf(one), 2), Finding::kUndecided);
}

TEST(StatisticsTest, MissingValuesAreLeftOut) {
  const std::array<double, 3> values = {1, kNan, 3};
  EXPECT_EQ(EstimateOf(values).count, 2u);
  EXPECT_EQ(EstimateOf(values).mean, 2);
  const std::array<double, 1> none = {kNan};
  EXPECT_EQ(EstimateOf(none).count, 0u);
  EXPECT_EQ(Against(EstimateOf(none), 0), Finding::kUndecided);
}

TEST(StatisticsTest, PairsRemoveWhatSeedsShare) {
  const std::array<double, 4> a = {1.1, 5.1, 9.1, 2.1};
  const std::array<double, 4> b = {1, 5, 9, 2};
  EXPECT_NEAR(PairedDifference(a, b).mean, 0.1, 1e-12);
  EXPECT_LT(PairedDifference(a, b).half_width, 1e-9);
  EXPECT_EQ(Against(PairedDifference(a, b), 0), Finding::kAbove);
  EXPECT_EQ(Against(PairedDifference(b, a), 0), Finding::kBelow);
  EXPECT_NEAR(PairedRatio(b, b).mean, 1, 1e-12);
}

TEST(StatisticsTest, AnIntervalHoldsTheMeanNineteenTimesInTwenty) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(10, 3);
  for (const size_t n : {2u, 5u, 8u, 40u}) {
    int held = 0;
    constexpr int kRounds = 4000;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<double> values(n);
      for (double& value : values) value = normal(random);
      const Estimate estimate = EstimateOf(values);
      held += estimate.low() <= 10 && 10 <= estimate.high() ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(held) / kRounds, 0.95, 0.012) << n;
  }
}

}  // namespace
}  // namespace pace
