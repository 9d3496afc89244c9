#include "report/accuracy.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

MetricsTable TwoBenchmarks() {
  MetricsTable table;
  for (int64_t version = 0; version < 3; ++version) {
    table.AddRow(version * 50);
    table.Set("time", 10.0 * static_cast<double>(version));
    table.Set("eval/a/b/mean@4", 0.2 + 0.1 * static_cast<double>(version));
    table.Set("eval/a/b/mean@4_half_width", 0.03);
    table.Set("eval/a/b/pass@4", 0.9);
    if (version != 1) table.Set("eval/c/mean@8", 0.5);
    table.Set("eval/c/mean@8_half_width", 0.04);
    table.Set("eval/c/mean@16", 0.7);
  }
  return table;
}

TEST(AccuracyTest, FindsEachBenchmarkOnceByItsMean) {
  MetricsTable table = TwoBenchmarks();
  table.Set("eval/mean@4", 1);
  table.Set("eval//mean@4", 1);
  table.Set("eval/d/mean@", 1);
  table.Set("eval/d/mean@k", 1);
  table.Set("evil/d/mean@4", 1);
  const std::vector<BenchmarkColumns> found = BenchmarksOf(table);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "a/b");
  EXPECT_EQ(found[0].k, "4");
  EXPECT_EQ(found[0].length, "eval/a/b/length");
  EXPECT_EQ(found[1].name, "c");
  EXPECT_EQ(found[1].mean, "eval/c/mean@8");
  EXPECT_TRUE(BenchmarksOf(MetricsTable()).empty());
}

TEST(AccuracyTest, AveragesTheEvaluationsThatHaveEveryBenchmark) {
  const MetricsTable table = TwoBenchmarks();
  const std::vector<AccuracyPoint> points = AccuracyOver(table, BenchmarksOf(table));
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].step, 100);
  EXPECT_EQ(points[1].time, 20);
  EXPECT_DOUBLE_EQ(points[1].mean, 0.45);
  EXPECT_DOUBLE_EQ(points[1].half_width, 0.025);
  EXPECT_TRUE(AccuracyOver(table, {}).empty());
}

TEST(AccuracyTest, ThinningKeepsTheFirstAndTheLast) {
  std::vector<AccuracyPoint> points;
  for (int64_t step = 0; step < 1000; ++step) points.push_back({step, {}, 0.5, 0});
  const std::vector<AccuracyPoint> thinned = Thinned(points, 7);
  ASSERT_EQ(thinned.size(), 7u);
  EXPECT_EQ(thinned.front().step, 0);
  EXPECT_EQ(thinned.back().step, 999);
  EXPECT_EQ(Thinned(thinned, 7).size(), 7u);
}

TEST(AccuracyTest, OneBenchmarkIsCalledByItsName) {
  const std::vector<BenchmarkColumns> found = BenchmarksOf(TwoBenchmarks());
  EXPECT_EQ(BenchmarksName(found), "2 benchmarks");
  EXPECT_EQ(BenchmarksName({&found[1], 1}), "c");
  EXPECT_EQ(BenchmarksName({}), "");
}

TEST(AccuracyTest, IsWrittenToATenthOfAPercent) {
  EXPECT_EQ(AccuracyText(0.7634, 0.0291), "76.3\u00a0% \u00b1\u00a02.9");
  EXPECT_EQ(AccuracyText(0), "0.0\u00a0%");
  EXPECT_LT(AccuracyText(1e308, 1e300).size(), 600u);
}

}  // namespace
}  // namespace pace
