#include "control/score_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "control/test_groups.h"

namespace pace {
namespace {

TEST(ScoreWindowTest, InterpolatesBetweenOrderStatistics) {
  ScoreWindow window(10);
  window.Add(std::vector<double>{4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(window.Quantile(0), 1);
  EXPECT_DOUBLE_EQ(window.Quantile(0.5), 2.5);
  EXPECT_DOUBLE_EQ(window.Quantile(1), 4);
  EXPECT_DOUBLE_EQ(window.Percentile(2), 0.5);
  EXPECT_DOUBLE_EQ(window.Percentile(0.5), 0);
}

TEST(ScoreWindowTest, ForgetsTheOldestAndAgreesWithSorting) {
  TestRandom random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const auto capacity = 1 + random.Below(20);
    ScoreWindow window(capacity);
    std::vector<double> history;
    for (int step = 0; step < 15; ++step) {
      std::vector<double> added(static_cast<size_t>(random.Below(30)));
      for (double& value : added) value = static_cast<double>(random.Below(8));
      window.Add(added);
      history.insert(history.end(), added.begin(), added.end());
      const auto keep = std::min<int64_t>(capacity, static_cast<int64_t>(history.size()));
      std::vector<double> expected(history.end() - keep, history.end());
      ASSERT_EQ(window.Values(), expected);
      std::sort(expected.begin(), expected.end());
      if (expected.empty()) continue;
      ASSERT_EQ(window.Quantile(0), expected.front());
      ASSERT_EQ(window.Quantile(1), expected.back());
      for (double value = -1; value < 9; value += 0.5) {
        const auto at_most =
            std::count_if(expected.begin(), expected.end(), [&](double x) { return x <= value; });
        ASSERT_EQ(window.Percentile(value),
                  static_cast<double>(at_most) / static_cast<double>(expected.size()));
        ASSERT_EQ(window.NumAbove(value), static_cast<int64_t>(expected.size()) - at_most);
        ASSERT_EQ(window.NumEqual(value), std::count(expected.begin(), expected.end(), value));
      }
    }
  }
}

}  // namespace
}  // namespace pace
