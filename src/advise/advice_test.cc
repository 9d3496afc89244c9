#include "advise/advice.h"

#include <gtest/gtest.h>

#include <string>

#include "advise/advice_text.h"

namespace pace {
namespace {

// Three seeds around the means; `noise` alternates, so that it does not cancel in differences.
CandidateRuns Measured(std::string_view title, double step, double lag, double wasted = 0,
                       double step_noise = 0, double lag_noise = 0) {
  CandidateRuns runs{.candidate = {title, "async", {}}, .overrides = {}, .seeds = {}};
  for (const double side : {-1.0, 0.0, 1.0}) {
    runs.seeds.push_back({.step_seconds = step + side * step_noise,
                          .token_seconds = (step + side * step_noise) / 1e6,
                          .lag = lag + side * lag_noise,
                          .wasted = wasted,
                          .trainer_idle = 0});
  }
  runs.num_steps = 80;
  runs.settled = true;
  return runs;
}

std::string BestOf(const std::vector<CandidateRuns>& runs, double slowdown = 0.02) {
  return std::string(runs[Advise(runs, slowdown).best].candidate.title);
}

std::string TextOf(const std::vector<CandidateRuns>& runs) {
  std::string out;
  for (const std::string& line : DescribeAdvice(runs, Advise(runs, 0.02), 0.02)) out += line + "\n";
  return out;
}

TEST(AdviceTest, TheFreshestOfTheFastIsAdvised) {
  const std::vector<CandidateRuns> runs = {Measured("Sync", 20, 0), Measured("Async 1", 10.3, 1.2),
                                           Measured("Async 2", 10.1, 2.2),
                                           Measured("Async 8", 10, 8)};
  EXPECT_EQ(BestOf(runs), "Async 2");
  EXPECT_EQ(Advise(runs, 0.02).fastest, 3u);
  EXPECT_EQ(Advise(runs, 0.02).fast, (std::vector<size_t>{2, 3}));
}

TEST(AdviceTest, TheSlowdownDecidesWhatIsFast) {
  const std::vector<CandidateRuns> runs = {Measured("Sync", 20, 0), Measured("Async 1", 10.3, 1.2),
                                           Measured("Async 8", 10, 8)};
  EXPECT_EQ(BestOf(runs, 0), "Async 8");
  EXPECT_EQ(BestOf(runs, 0.02), "Async 8");
  EXPECT_EQ(BestOf(runs, 0.03), "Async 1");
  EXPECT_EQ(BestOf(runs, 1), "Sync");
}

TEST(AdviceTest, StepsThatAreShortBecauseTheyTrainOnLittleAreNotFast) {
  std::vector<CandidateRuns> runs = {Measured("Async 2", 10, 2), Measured("PACE", 9, 1, 0.6)};
  for (SeedResult& seed : runs[1].seeds) seed.token_seconds *= 1.5;
  EXPECT_EQ(BestOf(runs), "Async 2");
}

TEST(AdviceTest, SyncIsAdvisedWhereItIsAsFast) {
  EXPECT_EQ(BestOf({Measured("Sync", 10.1, 0), Measured("Async 8", 10, 3)}), "Sync");
}

TEST(AdviceTest, ATieInLagGoesToTheSimpler) {
  const std::vector<CandidateRuns> runs = {Measured("Async 2", 10, 2.05), Measured("PACE", 10, 2)};
  EXPECT_EQ(BestOf(runs), "Async 2");
  EXPECT_EQ(Advise(runs, 0.02).tied, (std::vector<size_t>{1}));
}

TEST(AdviceTest, ADifferenceWithinTheNoiseIsATie) {
  const auto runs = [](double noise) {
    return std::vector<CandidateRuns>{Measured("Async 2", 10, 2.5),
                                      Measured("PACE", 10, 2, 0, 0, noise)};
  };
  EXPECT_EQ(BestOf(runs(0.1)), "PACE");
  EXPECT_EQ(BestOf(runs(1)), "Async 2");
}

TEST(AdviceTest, ATieInLagGoesToTheOneThatWastesNothing) {
  const std::vector<CandidateRuns> runs = {Measured("PACE", 10, 2, 0.4), Measured("JIT", 10, 2)};
  EXPECT_EQ(BestOf(runs), "JIT");
}

TEST(AdviceTest, WasteIsNamedWithTheBestThatWastesNothing) {
  const std::vector<CandidateRuns> runs = {Measured("Async 4", 10, 4), Measured("Async 8", 10, 8),
                                           Measured("PACE", 10, 2, 0.4)};
  const Advice advice = Advise(runs, 0.02);
  EXPECT_EQ(advice.best, 2u);
  EXPECT_EQ(advice.best_without_waste, 0u);
  EXPECT_NE(TextOf(runs).find("40.0 % of the generated tokens are never trained; without waste: "
                              "Async 4, lag 4.00, 10.00 s per step"),
            std::string::npos)
      << TextOf(runs);
}

TEST(AdviceTest, TheBestThatWastesNothingIsNamedEvenIfItIsSlower) {
  const std::vector<CandidateRuns> runs = {Measured("Async 2", 11, 2), Measured("Async 8", 11, 8),
                                           Measured("PACE", 10, 2, 0.4)};
  const Advice advice = Advise(runs, 0.02);
  EXPECT_EQ(advice.best, 2u);
  EXPECT_EQ(advice.best_without_waste, 0u);
}

TEST(AdviceTest, ASlowCandidateWithinTheErrorOfTheLimitIsNamed) {
  const auto runs = [](double noise) {
    return std::vector<CandidateRuns>{Measured("Async 1", 10.25, 1, 0, noise),
                                      Measured("Async 8", 10, 8)};
  };
  EXPECT_TRUE(Advise(runs(0.01), 0.02).nearly_fast.empty());
  EXPECT_EQ(Advise(runs(0.2), 0.02).nearly_fast, (std::vector<size_t>{0}));
  EXPECT_NE(TextOf(runs(0.2)).find("Async 1: fresher, and slower than allowed by less than the"),
            std::string::npos);
}

TEST(AdviceTest, OneCandidateWithOneSeedIsAdvisedWithoutASpread) {
  std::vector<CandidateRuns> runs = {Measured("Async 8", 10, 8)};
  runs[0].seeds.resize(1);
  EXPECT_EQ(BestOf(runs), "Async 8");
  EXPECT_FALSE(MeanOver(runs[0].seeds, &SeedResult::lag).error.has_value());
  EXPECT_NE(TextOf(runs).find("the spread is not known"), std::string::npos);
}

TEST(AdviceTest, GainAndCostAreAgainstAsync8AndSync) {
  const std::vector<CandidateRuns> runs = {Measured("Sync", 20, 0), Measured("Async 2", 10.1, 2),
                                           Measured("Async 8", 10, 8)};
  const std::string text = TextOf(runs);
  EXPECT_NE(text.find("gain: against Async 8: lag 2.00 instead of 8.00, 10.10 s per step instead "
                      "of 10.00 (+1.0 % per trained token)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("cost: against Sync: lag 2.00 instead of 0.00, 10.10 s per step instead of "
                      "20.00 (-49.5 % per trained token)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("no other is a tie"), std::string::npos) << text;
}

TEST(AdviceTest, WhatHasNotSettledIsNamed) {
  std::vector<CandidateRuns> runs = {Measured("Async 2", 10, 2), Measured("Async 8", 10, 8)};
  runs[1].settled = false;
  runs[1].num_steps = 640;
  EXPECT_NE(TextOf(runs).find("not settled after 640 steps: Async 8"), std::string::npos);
}

TEST(AdviceTest, EstimatesAreTheMeanAndItsStandardError) {
  const std::vector<SeedResult> a = {{.lag = 1}, {.lag = 2}, {.lag = 3}};
  const SeedMean estimate = MeanOver(a, &SeedResult::lag);
  EXPECT_DOUBLE_EQ(estimate.mean, 2);
  EXPECT_DOUBLE_EQ(*estimate.error, 1 / std::sqrt(3.0));
  const std::vector<SeedResult> b = {{.lag = 0}, {.lag = 1}, {.lag = 2}};
  const SeedMean difference = MeanDifference(a, b, &SeedResult::lag);
  EXPECT_DOUBLE_EQ(difference.mean, 1);
  EXPECT_DOUBLE_EQ(*difference.error, 0);
}

}  // namespace
}  // namespace pace
