#include "report/series.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

MetricsTable Counting(int64_t num_steps) {
  MetricsTable table;
  for (int64_t step = 0; step < num_steps; ++step) {
    table.AddRow(step);
    if (step % 10 != 3) table.Set("x", static_cast<double>(step));
  }
  return table;
}

TEST(SeriesTest, AShortRunKeepsEveryValueItHas) {
  const std::vector<Point> points = MetricOverSteps(Counting(20), "x", 100);
  EXPECT_EQ(points.size(), 18u);
  EXPECT_EQ(points[3].x, 4);
  EXPECT_EQ(points[3].y, 4);
}

TEST(SeriesTest, ALongRunIsMeansOfEqualParts) {
  const MetricsTable table = Counting(1000);
  EXPECT_EQ(StepsPerPoint(table, 100), 10u);
  const std::vector<Point> points = MetricOverSteps(table, "x", 100);
  ASSERT_EQ(points.size(), 100u);
  // 0 to 9 without 3.
  EXPECT_DOUBLE_EQ(points[0].y, 42.0 / 9);
  EXPECT_DOUBLE_EQ(points[0].x, 42.0 / 9);
}

TEST(SeriesTest, AnUnknownMetricHasNoPoints) {
  EXPECT_TRUE(MetricOverSteps(Counting(20), "y", 100).empty());
  EXPECT_TRUE(MetricOverSteps(MetricsTable(), "x", 100).empty());
}

}  // namespace
}  // namespace pace
