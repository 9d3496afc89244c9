#include "sim/sweep.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

SweepRow Row(const std::string& name, double seconds, double waiting, int64_t wasted) {
  SweepRow row{.assignments = {name}, .totals = {}};
  row.totals.time_per_trained_prompt = Seconds(seconds);
  row.totals.mean_waiting = waiting;
  row.totals.num_tokens_never_trained = wasted;
  row.totals.num_tokens_generated = 100;
  return row;
}

TEST(SweepTest, TheFreshestOfTheFastIsTaken) {
  SweepResult result;
  result.rows = {Row("k=1", 1.30, 1, 50), Row("k=2", 1.015, 3, 30), Row("k=3", 1.00, 8, 0),
                 Row("k=4", 1.40, 9, 60)};
  RankRows(result);
  EXPECT_EQ(result.best, 1u);
  EXPECT_TRUE(result.rows[0].on_front && result.rows[1].on_front && result.rows[2].on_front);
  EXPECT_FALSE(result.rows[3].on_front);
  EXPECT_NE(result.advice.find("take k=2"), std::string::npos) << result.advice;
  EXPECT_NE(result.advice.find("k=3, is 1.5 % faster at waiting staleness 8.00"), std::string::npos)
      << result.advice;
}

TEST(SweepTest, TheResultDoesNotDependOnTheNumberOfThreads) {
  const auto settings = LoadSettings("small", {"run.num_steps=20"});
  ASSERT_TRUE(settings.ok());
  const std::vector<SweepAxis> axes = {*ParseSweepAxis("method=async,effective"),
                                       *ParseSweepAxis("supply.threshold=1,4")};
  int64_t num_calls = 0;
  const auto one = RunSweep(*settings, axes, {.num_threads = 1, .progress = {}});
  const auto four = RunSweep(
      *settings, axes, {.num_threads = 4, .progress = [&](int64_t, int64_t) { ++num_calls; }});
  ASSERT_TRUE(one.ok() && four.ok());
  ASSERT_EQ(one->rows.size(), 4u);
  EXPECT_EQ(num_calls, 4);
  EXPECT_EQ(one->advice, four->advice);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(one->rows[i].assignments, four->rows[i].assignments);
    EXPECT_EQ(one->rows[i].totals.time, four->rows[i].totals.time);
    EXPECT_EQ(one->rows[i].totals.num_tokens_generated, four->rows[i].totals.num_tokens_generated);
  }
  EXPECT_EQ(one->rows[1].assignments,
            (std::vector<std::string>{"method=async", "supply.threshold=4"}));
  EXPECT_NE(one->rows[0].totals.mean_waiting, one->rows[1].totals.mean_waiting);
}

TEST(SweepTest, BadAxesAreRefusedBeforeAnythingRuns) {
  EXPECT_FALSE(ParseSweepAxis("supply.threshold").ok());
  EXPECT_FALSE(ParseSweepAxis("supply.threshold=").ok());
  EXPECT_FALSE(ParseSweepAxis("supply.threshold=1,,2").ok());
  const auto unknown = RunSweep(Settings(), {{"supply.treshold", {"1"}}}, {});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("supply.threshold"), std::string::npos);
  EXPECT_FALSE(RunSweep(Settings(), {{"run.seed", std::vector<std::string>(10001, "1")}}, {}).ok());
}

}  // namespace
}  // namespace pace
