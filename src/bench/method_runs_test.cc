#include "bench/method_runs.h"

#include <gtest/gtest.h>

#include "core/json_writer.h"

namespace pace {
namespace {

Measurement Of(std::vector<double> repetitions) {
  Measurement measured;
  measured.repetitions = std::move(repetitions);
  return measured;
}

// Steps that are faster, but train half as many tokens.
TEST(MethodRunsTest, PaceIsHeldAgainstAsyncPerStepAndPerToken) {
  MethodTimings timings;
  timings.steps = {{"async", Of({2, 4})}, {"effective", Of({1.5, 3})}};
  timings.tokens = {{"async", Of({20, 40})}, {"effective", Of({30, 60})}};
  timings.parts = {{"effective/admission/offered", {40, 0}},
                   {"effective/admission/rejected", {10, 0}},
                   {"effective/time/rescore_visible", {0.1, 0.3}},
                   {"effective/time/other", {0.05, 0}}};
  const std::vector<Measurement> found = OverAsync(timings, "tiny_", 1.02);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].name, "tiny_effective_over_async");
  EXPECT_EQ(found[0].repetitions, (std::vector<double>{0.75, 0.75}));
  EXPECT_EQ(found[1].name, "tiny_effective_over_async_per_token");
  EXPECT_EQ(found[1].repetitions, (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(found[1].limit, 1.02);
  EXPECT_EQ(found[2].name, "tiny_effective_rejected");
  EXPECT_EQ(found[2].repetitions, (std::vector<double>{0.25, 0}));
  EXPECT_EQ(found[3].name, "tiny_effective_own_share");
  EXPECT_NEAR(found[3].repetitions[0], 0.1, 1e-12);
  EXPECT_NEAR(found[3].repetitions[1], 0.1, 1e-12);

  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  PutIntervals(json, found);
  json.EndObject();
  EXPECT_EQ(text,
            "{\"tiny_effective_over_async_95\":[0.75,0.75],"
            "\"tiny_effective_over_async_per_token_95\":[1.5,1.5]}");
}

TEST(MethodRunsTest, TheUsersSettingsComeAfterThoseOfTheTask) {
  const Result<Settings> settings =
      TaskSettings({"run.num_steps=25", "batch.num_groups=4"}, {"run.num_steps=9"}, 5);
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_EQ(settings->run.num_steps, 9);
  EXPECT_EQ(settings->batch.num_groups, 4);
  const Result<Settings> short_run = TaskSettings({"run.num_steps=25"}, {"run.num_steps=5"}, 5);
  EXPECT_EQ(short_run.status().message(),
            "run.num_steps = 5: must be above 5, the steps that warm up");
}

}  // namespace
}  // namespace pace
