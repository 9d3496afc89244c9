#include "advise/candidate_runs.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

using Rows = std::vector<std::vector<MetricsRow>>;  // of several runs

MetricsRow Row(double step, double waiting, double generated = 0, double never_trained = 0) {
  return {{"time/step", step},
          {"time/wait_data", step / 4},
          {"selection/length_trained", 50},
          {"staleness/waiting/mean", waiting},
          {"staleness/generation/mean", 0.5},
          {"cost/tokens_generated", generated},
          {"cost/tokens_never_trained", never_trained}};
}

// Step time and waiting grow by these per row.
std::vector<MetricsRow> Growing(double step_growth, double waiting_growth) {
  std::vector<MetricsRow> rows;
  for (int i = 0; i < 40; ++i) rows.push_back(Row(10 + step_growth * i, 4 + waiting_growth * i));
  return rows;
}

TEST(CandidateRunsTest, TheSecondHalfIsMeasured) {
  const std::vector<MetricsRow> rows = {Row(100, 9, 1000, 1000), Row(100, 9, 2000, 1000),
                                        Row(10, 2, 2500, 1100), Row(20, 4, 3000, 1100)};
  const SeedResult result = SecondHalf(rows, 6);
  EXPECT_DOUBLE_EQ(result.step_seconds, 15);
  EXPECT_DOUBLE_EQ(result.token_seconds, 0.05);
  EXPECT_DOUBLE_EQ(result.lag, 3.5);
  EXPECT_DOUBLE_EQ(result.wasted, 0.1);
  EXPECT_DOUBLE_EQ(result.trainer_idle, 0.25);
}

TEST(CandidateRunsTest, ARunWhoseQuartersAgreeHasSettled) {
  EXPECT_TRUE(HasSettled(Rows{Growing(0, 0)}));
  EXPECT_TRUE(HasSettled(Rows{Growing(0.01, 0.01)}));
  EXPECT_FALSE(HasSettled(Rows{Growing(0.1, 0)}));
  EXPECT_FALSE(HasSettled(Rows{Growing(0, 0.1)}));
}

TEST(CandidateRunsTest, TheSeedsTogetherDecideWhetherARunHasSettled) {
  EXPECT_TRUE(HasSettled(Rows{Growing(0.1, 0.1), Growing(-0.1, -0.1)}));
}

class MeasureCandidatesTest : public testing::Test {
 protected:
  const std::vector<Candidate> candidates_ = {Candidates().front(), Candidates().back()};
  const Result<Settings> settings_ = LoadSettings("small", {});
};

TEST_F(MeasureCandidatesTest, TheResultDoesNotDependOnTheNumberOfThreads) {
  ASSERT_TRUE(settings_.ok());
  const MeasureOptions options{.num_seeds = 3, .first_steps = 12, .max_steps = 24};
  MeasureOptions one = options, four = options;
  one.num_threads = 1;
  four.num_threads = 4;
  const auto a = MeasureCandidates(*settings_, candidates_, one);
  const auto b = MeasureCandidates(*settings_, candidates_, four);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ((*a)[i].seeds.size(), 3u);
    EXPECT_EQ((*a)[i].num_steps, (*b)[i].num_steps);
    for (size_t seed = 0; seed < 3; ++seed) {
      EXPECT_EQ((*a)[i].seeds[seed].step_seconds, (*b)[i].seeds[seed].step_seconds);
      EXPECT_EQ((*a)[i].seeds[seed].lag, (*b)[i].seeds[seed].lag);
    }
  }
  EXPECT_EQ((*a)[0].seeds[0].lag, 0);
  EXPECT_GT((*a)[1].seeds[0].lag, 0);
  EXPECT_NE((*a)[1].seeds[0].lag, (*a)[1].seeds[1].lag);
}

TEST_F(MeasureCandidatesTest, WhatHasNotSettledIsSimulatedLonger) {
  ASSERT_TRUE(settings_.ok());
  int64_t num_calls = 0;
  const auto runs = MeasureCandidates(
      *settings_, candidates_,
      {.num_seeds = 1, .first_steps = 4, .max_steps = 512, .progress = [&](int64_t, int64_t) {
         ++num_calls;
       }});
  ASSERT_TRUE(runs.ok());
  EXPECT_GT(num_calls, 2);
  for (const CandidateRuns& run : *runs) EXPECT_TRUE(run.settled || run.num_steps == 512);
}

TEST_F(MeasureCandidatesTest, ALayoutThatCannotRunIsAnErrorThatNamesTheCandidate) {
  Settings settings = *settings_;
  settings.workload.max_tokens = 100'000'000;
  const auto runs = MeasureCandidates(settings, candidates_, {});
  ASSERT_FALSE(runs.ok());
  EXPECT_NE(runs.status().message().find("Sync"), std::string::npos) << runs.status().message();
}

}  // namespace
}  // namespace pace
