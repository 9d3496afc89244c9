#include "compare/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(StatisticsTest, KnowsStudentsDistribution) {
  EXPECT_DOUBLE_EQ(StudentCdf(0, 5), 0.5);
  EXPECT_NEAR(StudentCdf(1, 1), 0.75, 1e-12);                       // Cauchy: 1/2 + atan(t)/pi
  EXPECT_NEAR(StudentCdf(-2, 2), 0.5 - 1 / std::sqrt(6.0), 1e-12);  // 1/2 + t / (2 sqrt(2 + t^2))
  EXPECT_NEAR(StudentCdf(1, 3), 0.8044988905221148, 1e-12);
  EXPECT_NEAR(StudentCdf(2.5, 8), 0.981528981143, 1e-10);
  for (size_t degrees = 1; degrees <= 30; ++degrees) {
    EXPECT_NEAR(StudentCdf(StudentQuantile(degrees), degrees), 0.975, 3e-6) << degrees;
  }
  EXPECT_NEAR(StudentCdf(StudentQuantile(200), 200), 0.975, 1e-4);
  EXPECT_NEAR(StudentCdf(-1e9, 7), 0, 1e-12);
}

TEST(StatisticsTest, APValueAgreesWithTheInterval) {
  const std::array<double, 4> values = {1, 2, 3, 4};
  const Estimate estimate = EstimateOf(values);
  EXPECT_NEAR(PValue(estimate, estimate.high()), 0.05, 1e-5);
  EXPECT_NEAR(PValue(estimate, estimate.low()), 0.05, 1e-5);
  EXPECT_DOUBLE_EQ(PValue(estimate, 2.5), 1);
  EXPECT_LT(PValue(estimate, -5), 0.01);
  const std::array<double, 1> one = {3};
  EXPECT_EQ(PValue(EstimateOf(one), 100), 1);
  const std::array<double, 2> same = {3, 3};
  EXPECT_EQ(PValue(EstimateOf(same), 2), 0);
  EXPECT_EQ(PValue(EstimateOf(same), 3), 1);
}

TEST(StatisticsTest, HolmAdjustsFromTheSmallest) {
  // Of R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
  const std::array<double, 4> p_values = {0.01, 0.04, 0.03, 0.005};
  const std::vector<double> adjusted = HolmAdjusted(p_values);
  const std::array<double, 4> wanted = {0.03, 0.06, 0.06, 0.02};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(adjusted[i], wanted[i], 1e-12) << i;
  const std::array<double, 2> large = {0.9, 0.8};
  EXPECT_EQ(HolmAdjusted(large), (std::vector<double>{1, 1}));
  const std::array<double, 1> one = {0.04};
  EXPECT_EQ(HolmAdjusted(one), std::vector<double>{0.04});
  EXPECT_TRUE(HolmAdjusted({}).empty());
}

// Against the rule in words: go through the claims from the smallest p-value on and stop at the
// first that exceeds 0.05 over the number of those that are left.
TEST(StatisticsTest, HolmRejectsWhatItsRuleRejects) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(0, 0.06);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> p_values(1 + round % 7);
    for (double& p : p_values) p = uniform(random);
    std::vector<double> sorted = p_values;
    std::sort(sorted.begin(), sorted.end());
    size_t num_rejected = 0;
    while (num_rejected < sorted.size() &&
           sorted[num_rejected] < 0.05 / static_cast<double>(sorted.size() - num_rejected)) {
      ++num_rejected;
    }
    const std::vector<double> adjusted = HolmAdjusted(p_values);
    for (size_t i = 0; i < p_values.size(); ++i) {
      const bool rejected = num_rejected > 0 && p_values[i] <= sorted[num_rejected - 1];
      EXPECT_EQ(adjusted[i] < 0.05, rejected);
    }
  }
}

TEST(StatisticsTest, AConstantDenominatorScalesTheInterval) {
  const std::array<double, 4> x = {1, 2, 3, 4};
  const std::array<double, 4> y = {2, 2, 2, 2};
  const RatioInterval found = FiellerRatio(x, y);
  const Estimate estimate = EstimateOf(x);
  EXPECT_TRUE(found.bounded);
  EXPECT_DOUBLE_EQ(found.ratio, 1.25);
  EXPECT_NEAR(found.low, estimate.low() / 2, 1e-12);
  EXPECT_NEAR(found.high, estimate.high() / 2, 1e-12);
}

TEST(StatisticsTest, ADenominatorThatMayBeZeroBoundsNothing) {
  const std::array<double, 3> x = {1, 2, 3};
  const std::array<double, 3> y = {-1, 0.5, 1};
  EXPECT_FALSE(FiellerRatio(x, y).bounded);
  EXPECT_TRUE(std::isnan(FiellerRatio(x, y).ratio));
  EXPECT_FALSE(FiellerRatio(std::array{1.0}, std::array{1.0}).bounded);
  EXPECT_EQ(FiellerRatio(std::array{1.0, kNan, 2.0}, std::array{1.0, 1.0, 1.1}).count, 2u);
}

// At either end the mean of x - r y differs from 0 by exactly its half-width.
TEST(StatisticsTest, FiellersIntervalInvertsThePairedTest) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> x(8), y(8);
    for (size_t i = 0; i < x.size(); ++i) {
      const double shared = normal(random);
      x[i] = 3 + shared + normal(random);
      y[i] = 5 + shared + 0.5 * normal(random);
    }
    const RatioInterval found = FiellerRatio(x, y);
    ASSERT_TRUE(found.bounded);
    EXPECT_LT(found.low, found.ratio);
    EXPECT_LT(found.ratio, found.high);
    for (const double r : {found.low, found.high}) {
      std::vector<double> rest(x.size());
      for (size_t i = 0; i < x.size(); ++i) rest[i] = x[i] - r * y[i];
      const Estimate estimate = EstimateOf(rest);
      EXPECT_NEAR(std::abs(estimate.mean), estimate.half_width, 1e-9);
    }
  }
}

TEST(StatisticsTest, FiellersIntervalHoldsTheRatioNineteenTimesInTwenty) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal(0, 1);
  constexpr int kRounds = 4000;
  int held = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> x(8), y(8);
    for (size_t i = 0; i < x.size(); ++i) {
      const double shared = normal(random);  // what the two differences share
      x[i] = 3 + shared + normal(random);
      y[i] = 6 + shared + normal(random);
    }
    const RatioInterval found = FiellerRatio(x, y);
    ASSERT_TRUE(found.bounded);
    held += found.low <= 0.5 && 0.5 <= found.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(held) / kRounds, 0.95, 0.012);
}

}  // namespace
}  // namespace pace
