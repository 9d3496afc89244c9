#include "bench/measurement.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(MeasurementTest, MedianAndQuartilesInterpolate) {
  const Measurement four{.name = "n", .unit = "u", .limit = {}, .repetitions = {4, 1, 3, 2}};
  EXPECT_DOUBLE_EQ(four.Median(), 2.5);
  EXPECT_DOUBLE_EQ(four.InterquartileRange(), 1.5);
  const Measurement one{.name = "n", .unit = "u", .limit = {}, .repetitions = {7}};
  EXPECT_DOUBLE_EQ(one.Median(), 7);
  EXPECT_DOUBLE_EQ(one.InterquartileRange(), 0);
}

TEST(MeasurementTest, TheIntervalOfAMedianIsMadeOfOrderStatistics) {
  // 1 - 2 (1 + 10) / 1024 = 97.9 % of the time between the second and the ninth.
  EXPECT_EQ(MedianIntervalOf({10, 9, 8, 7, 6, 5, 4, 3, 2, 1}), (std::pair{2.0, 9.0}));
  EXPECT_EQ(MedianIntervalOf({3, 1, 2}), (std::pair{1.0, 3.0}));
  EXPECT_EQ(MedianIntervalOf({4}), (std::pair{4.0, 4.0}));
}

TEST(MeasurementTest, TheMedianIsHeldAgainstTheLimit) {
  Measurement measurement{.name = "n", .unit = "u", .limit = 3.0, .repetitions = {1, 3, 99}};
  EXPECT_TRUE(measurement.WithinLimit());
  measurement.limit = 2.0;
  EXPECT_FALSE(measurement.WithinLimit());
  measurement.limit_kind = Limit::kAtLeast;
  EXPECT_TRUE(measurement.WithinLimit());
  measurement.limit = 4.0;
  EXPECT_FALSE(measurement.WithinLimit());
  measurement.limit.reset();
  EXPECT_TRUE(measurement.WithinLimit());
}

TEST(MeasurementTest, RatiosAreTakenWithinARound) {
  const Measurement a{.name = "a", .unit = "u", .limit = {}, .repetitions = {2, 40}};
  const Measurement b{.name = "b", .unit = "u", .limit = {}, .repetitions = {1, 10}};
  EXPECT_EQ(RatioOf(a, b, "a_over_b", 3).repetitions, (std::vector<double>{2, 4}));
}

TEST(MeasurementTest, RoundsVisitEveryBenchmarkOnce) {
  std::vector<char> order;
  const auto named = [&order](char name) {
    return MeasuredLoop{{.name = {name}, .unit = "u", .limit = {}}, [&order, name](double seconds) {
                          order.push_back(name);
                          return seconds;
                        }};
  };
  std::vector<MeasuredLoop> benchmarks = {named('a'), named('b')};
  RunRound(benchmarks, 0.5);
  RunRound(benchmarks, 0.25);
  EXPECT_EQ(order, (std::vector<char>{'a', 'b', 'a', 'b'}));
  EXPECT_EQ(benchmarks[1].measurement.repetitions, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(benchmarks[1].measurement.cpu_shares.size(), 2U);
}

}  // namespace
}  // namespace pace
