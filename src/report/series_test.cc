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

TEST(SeriesTest, TimesTakeThePlaceOfSteps) {
  MetricsTable table;
  for (int64_t step = 0; step < 4; ++step) {
    table.AddRow(step);
    if (step != 2) table.Set("time", 10.0 * static_cast<double>(step));
    table.Set("x", 1);
  }
  const std::vector<Point> points = MetricOverTime(table, "x", 100);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[2].x, 30);
}

TEST(SeriesTest, SmoothingTakesTheMeanOfNeighbours) {
  std::vector<Point> points;
  for (int i = 0; i < 9; ++i) points.push_back({1.0 * i, 2.0 * i});
  const std::vector<Point> straight = Smoothed(points, 5);
  for (size_t i = 2; i < 7; ++i) EXPECT_DOUBLE_EQ(straight[i].y, points[i].y);
  EXPECT_DOUBLE_EQ(straight[0].y, 2);
  EXPECT_DOUBLE_EQ(straight[8].y, 14);
  points[4].y += 10;
  EXPECT_DOUBLE_EQ(Smoothed(points, 5)[4].y, 10);
  EXPECT_DOUBLE_EQ(Smoothed(points, 5)[2].y, 6);
  EXPECT_DOUBLE_EQ(Smoothed(points, 1)[4].y, 18);
  EXPECT_TRUE(Smoothed({}, 5).empty());
}

TEST(SeriesTest, AnUnknownMetricHasNoPoints) {
  EXPECT_TRUE(MetricOverSteps(Counting(20), "y", 100).empty());
  EXPECT_TRUE(MetricOverSteps(MetricsTable(), "x", 100).empty());
}

}  // namespace
}  // namespace pace
