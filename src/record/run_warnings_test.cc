#include "record/run_warnings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pace {
namespace {

WarningOptions SomeOptions() {
  return {.verifier = "task.verifier = dapo-int"};
}

// A step that calls for nothing.
StepFacts GoodStep(int64_t step) {
  return {.step = step,
          .num_scores = 100,
          .budget = 0.3,
          .num_offered = 12,
          .num_rejected = 4,
          .num_trained = 8,
          .num_equal_rewards = 2,
          .num_responses = 48,
          .num_correct = 20,
          .last_response = "Answer: 5"};
}

std::vector<std::string> TextsOf(const std::vector<RunWarning>& warnings) {
  std::vector<std::string> texts;
  for (const RunWarning& warning : warnings) texts.push_back(warning.text);
  return texts;
}

using Lines = std::vector<std::string>;

TEST(RunWarningsTest, AGoodRunIsQuiet) {
  RunWarnings warnings(SomeOptions());
  for (int64_t step = 0; step < 100; ++step) {
    EXPECT_EQ(TextsOf(warnings.OnStep(GoodStep(step))), Lines{});
  }
}

TEST(RunWarningsTest, WarmingUpSaysHowFarItIs) {
  RunWarnings warnings(SomeOptions());
  StepFacts facts = GoodStep(0);
  facts.warming_up = true;
  facts.num_rejected = 0;
  facts.num_scores = 16;
  EXPECT_EQ(TextsOf(warnings.OnStep(facts)),
            Lines{"PACE is warming up: 16 of 32 scores; nothing is rejected yet"});
}

TEST(RunWarningsTest, AWarningComesBackAtDoublingIntervals) {
  RunWarnings warnings(SomeOptions());
  std::vector<int64_t> said;
  for (int64_t step = 1; step <= 40; ++step) {
    StepFacts facts = GoodStep(step);
    facts.warming_up = true;
    for (const RunWarning& warning : warnings.OnStep(facts)) said.push_back(warning.step);
  }
  EXPECT_EQ(said, (std::vector<int64_t>{1, 2, 4, 8, 16, 32}));
}

TEST(RunWarningsTest, EqualRewardsNameTheVerifierAndShowAResponse) {
  RunWarnings warnings(SomeOptions());
  StepFacts facts = GoodStep(0);
  facts.num_equal_rewards = facts.num_trained;
  EXPECT_EQ(TextsOf(warnings.OnStep(facts)), Lines{});
  EXPECT_EQ(TextsOf(warnings.OnStep(facts)),
            Lines{"no group had two different rewards in the last 2 steps: nothing is learned; is "
                  "task.verifier = dapo-int right? last response: \"Answer: 5\""});
  // A step with a signal begins the count again.
  warnings.OnStep(GoodStep(3));
  EXPECT_EQ(TextsOf(warnings.OnStep(facts)), Lines{});
}

TEST(RunWarningsTest, EqualRewardsOfSingleResponsesAreNoWarning) {
  WarningOptions options = SomeOptions();
  options.compares_members = false;
  RunWarnings warnings(options);
  StepFacts facts = GoodStep(0);
  facts.num_equal_rewards = facts.num_trained;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(TextsOf(warnings.OnStep(facts)), Lines{});
}

TEST(RunWarningsTest, NeverCorrectIsSaidOnceWithEqualRewardsAndAloneWithout) {
  StepFacts facts = GoodStep(0);
  facts.num_correct = 0;
  RunWarnings alone(SomeOptions());
  EXPECT_EQ(TextsOf(alone.OnStep(facts)), Lines{});
  EXPECT_EQ(TextsOf(alone.OnStep(facts)),
            Lines{"none of 96 responses was correct; is task.verifier = dapo-int right? last "
                  "response: \"Answer: 5\""});
  facts.num_equal_rewards = facts.num_trained;
  RunWarnings both(SomeOptions());
  both.OnStep(facts);
  const Lines lines = TextsOf(both.OnStep(facts));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("nothing is learned; no response was ever correct; is task.verifier"),
            std::string::npos)
      << lines[0];
  // After a correct response the verifier is no longer in doubt.
  RunWarnings later(SomeOptions());
  later.OnStep(GoodStep(0));
  facts.num_equal_rewards = 0;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(TextsOf(later.OnStep(facts)), Lines{});
}

TEST(RunWarningsTest, SkippedUpdatesAreNamed) {
  RunWarnings warnings(SomeOptions());
  StepFacts facts = GoodStep(9);
  facts.num_skipped_updates = 0.5;
  const Lines lines = TextsOf(warnings.OnStep(facts));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("step 9 skipped an update whose loss or gradient was not finite"), 0u);
}

TEST(RunWarningsTest, RejectionFarAboveTheBudgetIsNamed) {
  RunWarnings warnings(SomeOptions());
  StepFacts facts = GoodStep(3);
  facts.budget = 0.029;
  facts.num_offered = 51;
  facts.num_rejected = 39;
  const Lines lines = TextsOf(warnings.OnStep(facts));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("step 3 rejected 39 of 51 groups (76 %) at a budget of 2.9 %"), 0u)
      << lines[0];
  facts.num_offered = 13;
  facts.num_rejected = 1;
  EXPECT_EQ(TextsOf(warnings.OnStep(facts)), Lines{});
}

TEST(RunWarningsTest, DynamicSamplingThatDropsEverythingIsNamed) {
  RunWarnings warnings(SomeOptions());
  Lines lines;
  for (int i = 0; i < 32; ++i) {
    for (const RunWarning& warning : warnings.OnGroupDropped(5, 8, "?")) {
      lines.push_back(warning.text);
    }
  }
  EXPECT_EQ(lines, Lines{"train.dynamic_sampling dropped 32 groups of equal rewards since step 5 "
                         "began to fill; is task.verifier = dapo-int right? last response: \"?\""});
}

TEST(RunWarningsTest, RewardsThatFailAreNamedAtDoublingIntervalsAndBeforeTheEnd) {
  RunWarnings warnings(SomeOptions());
  Lines lines;
  for (int i = 1; i <= 7; ++i) {
    for (const RunWarning& warning : warnings.OnFailedReward(3, Concat("p", i), i == 7)) {
      EXPECT_EQ(warning.kind, WarningKind::kFailedRewards);
      EXPECT_EQ(warning.step, 3);
      lines.push_back(warning.text);
    }
  }
  EXPECT_EQ(lines, (Lines{"p1", "p2 (2 so far)", "p4 (4 so far)", "p7 (7 so far)"}));
  RunWarnings again(SomeOptions());
  again.Restore(warnings.state());
  EXPECT_EQ(TextsOf(again.OnFailedReward(3, "p8", false)), Lines{"p8 (8 so far)"});
  EXPECT_EQ(TextsOf(again.OnFailedReward(3, "p9", false)), Lines{});
}

TEST(RunWarningsTest, AResponseCannotSteerTheTerminal) {
  EXPECT_EQ(OneLine(" a\033[2J\n\tb\x9b\xff "), "a [2J b\uFFFD\uFFFD");
  EXPECT_EQ(OneLine(std::string(200, 'x') + "end", 6), "...xxxend");
}

TEST(RunWarningsTest, ALineReadsBack) {
  const RunWarning warning = {WarningKind::kOverBudget, 7, "a \"text\""};
  const std::string line = WarningLine(warning);
  EXPECT_EQ(line, R"({"step":7,"kind":"over_budget","text":"a \"text\""})");
  const Result<RunWarning> read = ParseWarningLine(line);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, warning);
  EXPECT_FALSE(ParseWarningLine("{}").ok());
  EXPECT_FALSE(ParseWarningLine(R"({"step":1,"kind":"gloom","text":""})").ok());
}

}  // namespace
}  // namespace pace
