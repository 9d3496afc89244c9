#include "report/axes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace pace {
namespace {

TEST(NiceTicksTest, AreRoundAndCoverTheRange) {
  EXPECT_EQ(NiceTicks(0, 10, 5).values, (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(NiceTicks(0, 97, 5).values, (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(NiceTicks(-1, 1, 4).values, (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(NiceTicks(3, 3, 4).values.front(), 3);
}

TEST(NiceTicksTest, StepsAreWhole) {
  EXPECT_EQ(WholeTicks(0, 2, 5).values, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(WholeTicks(0, 0, 5).values, (std::vector<double>{0, 1}));
  EXPECT_EQ(WholeTicks(0, 97, 5).values, NiceTicks(0, 97, 5).values);
}

TEST(NiceTicksTest, HoldForAnyRange) {
  const double inf = std::numeric_limits<double>::infinity();
  const double values[] = {-inf, -1e300, -7,  -1e-12, 0,     1e-300, 3e-9,
                           0.1,  1,      299, 1e9,    1e300, inf,    std::nan("")};
  for (const double lo : values) {
    for (const double hi : values) {
      for (const int target : {1, 5, 26}) {
        const Ticks ticks = NiceTicks(lo, hi, target);
        ASSERT_GE(ticks.values.size(), 2u) << lo << " " << hi;
        ASSERT_LE(ticks.values.size(), static_cast<size_t>(3 * target + 2)) << lo << " " << hi;
        ASSERT_TRUE(std::isfinite(ticks.lo()) && std::isfinite(ticks.hi()));
        ASSERT_LT(ticks.lo(), ticks.hi()) << lo << " " << hi;
        ASSERT_LT(TickLabel(ticks.hi(), ticks.step).size(), 20u);
      }
    }
  }
}

TEST(TickLabelTest, SmallDistancesAreToldApartInFewCharacters) {
  EXPECT_EQ(TickLabel(0.0015, 0.0005), "0.0015");
  EXPECT_EQ(TickLabel(0.000015, 0.000005), "1.5e-5");
  EXPECT_EQ(TickLabel(-2e-12, 1e-12), "-2e-12");
  EXPECT_EQ(TickLabel(0, 1e-9), "0");
}

TEST(PlotTest, LongLabelsMoveTheLeftEdge) {
  Plot plot(NiceTicks(0, 10, 5), NiceTicks(0, 10, 5));
  plot.MakeRoomForLabels();
  EXPECT_EQ(plot.left, 44);
  Plot small(NiceTicks(0, 10, 5), NiceTicks(-0.0015, 0.0015, 5));
  small.MakeRoomForLabels();
  EXPECT_GT(small.left, 50);
}

TEST(TickLabelTest, HasTheDigitsTheDistanceNeeds) {
  EXPECT_EQ(TickLabel(0, 0.25), "0");
  EXPECT_EQ(TickLabel(0.5, 0.1), "0.5");
  EXPECT_EQ(TickLabel(0.25, 0.05), "0.25");
  EXPECT_EQ(TickLabel(1200, 200), "1,200");
  EXPECT_EQ(TickLabel(20000, 10000), "20k");
  EXPECT_EQ(TickLabel(12500, 500), "12.5k");
  EXPECT_EQ(TickLabel(30000000, 10000000), "30M");
  EXPECT_EQ(TickLabel(-50, 10), "-50");
}

TEST(ReadableTest, KeepsAboutThreeDigits) {
  EXPECT_EQ(Readable(0), "0.00");
  EXPECT_EQ(Readable(0.0312), "0.031");
  EXPECT_EQ(Readable(1.234), "1.23");
  EXPECT_EQ(Readable(26.19), "26.2");
  EXPECT_EQ(Readable(812.4), "812");
  EXPECT_EQ(Readable(1841), "1,841");
  EXPECT_EQ(Readable(54321), "54.3k");
  EXPECT_EQ(Readable(109440000), "109M");
  EXPECT_EQ(Readable(-3.5), "-3.50");
  EXPECT_EQ(Readable(std::nan("")), "-");
}

TEST(PercentTest, SmallSharesKeepADigit) {
  EXPECT_EQ(Percent(0.413), "41\u00a0%");
  EXPECT_EQ(Percent(0.044), "4.4\u00a0%");
  EXPECT_EQ(Percent(0), "0\u00a0%");
}

}  // namespace
}  // namespace pace
