#include "sim/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cluster/tool_pool.h"
#include "record/step_clock.h"

namespace pace {
namespace {

Workload Make(const WorkloadOptions& options) {
  auto workload = Workload::Create(options, 7);
  EXPECT_TRUE(workload.ok()) << workload.status().message();
  return *workload;
}

struct Moments {
  double mean = 0;
  double within = 0;      // correlation of two members of a group
  double difficulty = 0;  // correlation with difficulty
};

Moments Measure(const Workload& workload) {
  const int kPrompts = 20000;
  double sum = 0, squares = 0, product = 0, with_difficulty = 0;
  for (int i = 0; i < kPrompts; ++i) {
    const PromptTraits traits = workload.Prompt(PromptIndex(i));
    const auto a = static_cast<double>(workload.Response(PromptIndex(i), 0, traits).num_tokens);
    const auto b = static_cast<double>(workload.Response(PromptIndex(i), 1, traits).num_tokens);
    sum += a + b;
    squares += a * a + b * b;
    product += 2 * a * b;
    with_difficulty += traits.difficulty * (a + b);
  }
  const double count = 2.0 * kPrompts;
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  return {mean, (product / count - mean * mean) / variance,
          with_difficulty / count / std::sqrt(variance)};
}

TEST(WorkloadTest, LengthsHaveTheirMeanAndCorrelations) {
  WorkloadOptions options;
  options.max_tokens = 10000000;
  for (const LengthLaw law : {LengthLaw::kLognormal, LengthLaw::kExponential}) {
    options.length = law;
    options.prompt_share = 0.5;
    const Moments mixed = Measure(Make(options));
    EXPECT_NEAR(mixed.mean / options.mean_tokens, 1, 0.02);
    EXPECT_NEAR(mixed.within, 0.45, 0.06);
    EXPECT_GT(mixed.difficulty, 0.4);
    options.prompt_share = 0;
    const Moments alone = Measure(Make(options));
    EXPECT_NEAR(alone.within, 0, 0.03);
    EXPECT_NEAR(alone.difficulty, 0, 0.03);
  }
}

TEST(WorkloadTest, HardPromptsFailMoreOftenAndCutOffResponsesAlways) {
  WorkloadOptions options;
  options.pass_rate = 0.7;
  const Workload workload = Make(options);
  double easy = 0, hard = 0;
  for (int i = 0; i < 2000; ++i) {
    PromptTraits traits = workload.Prompt(PromptIndex(i));
    (traits.difficulty < 0 ? easy : hard) += workload.Correct(PromptIndex(i), 0, traits, {});
    EXPECT_FALSE(workload.Correct(PromptIndex(i), 0, traits, {.truncated = true}));
  }
  EXPECT_GT(easy, 1.5 * hard);
}

TEST(WorkloadTest, ToolOutputComesOutOfTheBudget) {
  WorkloadOptions options;
  options.mean_tokens = 100000;
  options.max_tokens = 1000;
  options.max_turns = 4;
  options.mean_turns = 4;
  options.tool_tokens = 100;
  const ResponseTraits response =
      Make(options).Response(PromptIndex(3), 1, Make(options).Prompt(PromptIndex(3)));
  EXPECT_EQ(response.num_turns, 4);
  EXPECT_EQ(response.num_tokens, 700);
  EXPECT_TRUE(response.truncated);
}

TEST(WorkloadTest, ThePrefixScoreLooksAtTheLastInterruptionWithEnoughTokens) {
  WorkloadOptions options;
  options.drift = 1;
  options.drift_power = 1;
  options.drift_floor = 0;
  options.drift_prompt_sigma = 0;
  options.drift_member_sigma = 0;
  const Workload workload = Make(options);
  const PrefixOptions prefix{.min_tokens = 10, .max_tokens = 30};
  const auto score = [&](std::vector<Segment> segments) {
    return workload.PrefixScore(PromptIndex(0), 0, 1.0, segments, prefix);
  };
  const auto v = [](int64_t step) { return PolicyVersion(step); };
  EXPECT_FALSE(score({{v(0), 500}}).has_value());           // never interrupted
  EXPECT_FALSE(score({{v(0), 9}, {v(1), 5}}).has_value());  // too early
  EXPECT_DOUBLE_EQ(*score({{v(0), 10}, {v(1), 5}}), 1);
  // Interrupted after 9 and after 20 tokens: the second counts, (9 * 3 + 11 * 2) / 20.
  EXPECT_DOUBLE_EQ(*score({{v(0), 9}, {v(1), 11}, {v(3), 5}}), 49.0 / 20);
  // A later one replaces it, and only 30 tokens count: (20 * 4 + 10 * 2) / 30.
  EXPECT_DOUBLE_EQ(*score({{v(0), 20}, {v(2), 40}, {v(4), 5}}), 100.0 / 30);
}

TEST(WorkloadTest, LengthsFromAFileKeepTheirDistribution) {
  const auto lengths = ParseLengths("10\n {\"length\": 30}\n\n20\r\n", "f");
  ASSERT_TRUE(lengths.ok()) << lengths.status().message();
  EXPECT_EQ(*lengths, (std::vector<int64_t>{10, 20, 30}));
}

TEST(WorkloadTest, BadLengthsAreNamed) {
  const auto message = [](const std::string& text) {
    const auto lengths = ParseLengths(text, "f");
    return lengths.ok() ? std::string("accepted") : lengths.status().message();
  };
  EXPECT_EQ(message("5\nx"), "f:2: must be an integer or {\"length\": integer}");
  EXPECT_EQ(message("0"), "f:1: length = 0: must be between 1 and 10000000");
  EXPECT_EQ(message("-3"), "f:1: length = -3: must be between 1 and 10000000");
  EXPECT_EQ(message("{\"length\": 1.5}"), "f:1: length = 1.5: must be an integer");
  EXPECT_EQ(message("{\"length\": 1, \"x\": 2}"), "f:1: x: unknown key");
  EXPECT_EQ(message("99999999999999999999"), "f:1: must be an integer or {\"length\": integer}");
  EXPECT_EQ(message("{\"length\": 18446744073709551615}"),
            "f:1: length = 18446744073709551615: must be <= 10000000");
  EXPECT_EQ(message("{\"length\": "), "f:1: column 11: not JSON: expected a value");
  EXPECT_EQ(message("\n\n"), "f: must hold at least one length");
}

TEST(ToolPoolTest, CallsBeyondTheLimitWaitForAPlace) {
  ToolPool tools(2);
  EXPECT_EQ(tools.Call(Seconds(0), Seconds(10)), Seconds(10));
  EXPECT_EQ(tools.Call(Seconds(1), Seconds(2)), Seconds(3));
  EXPECT_EQ(tools.Call(Seconds(2), Seconds(5)), Seconds(8));
  EXPECT_EQ(tools.Call(Seconds(9), Seconds(1)), Seconds(10));
  ToolPool unlimited(0);
  EXPECT_EQ(unlimited.Call(Seconds(0), Seconds(10)), Seconds(10));
  EXPECT_EQ(unlimited.Call(Seconds(0), Seconds(1)), Seconds(1));
}

TEST(StepClockTest, TimeGoesToThePartThatWasSet) {
  StepClock clock;
  clock.Set(StepPart::kSync, Seconds(1));
  clock.Set(StepPart::kTrain, Seconds(4));
  const StepTimes times = clock.EndStep(Seconds(10), Seconds(2));
  EXPECT_EQ(times.wait_data, Seconds(1));
  EXPECT_EQ(times.sync, Seconds(3));
  EXPECT_EQ(times.train, Seconds(6));
  EXPECT_EQ(times.step, Seconds(10));
  EXPECT_EQ(times.rescore_hidden, Seconds(2));
  EXPECT_EQ(clock.EndStep(Seconds(11), Seconds(0)).step, Seconds(1));
}

}  // namespace
}  // namespace pace
