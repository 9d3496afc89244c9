#include "execution/prompt_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "execution/small_run.h"

namespace pace {
namespace {

GroupRequest RequestWith(const std::vector<std::string>& overrides, int64_t prompt) {
  const Settings settings = SmallSettings(overrides);
  const Result<PromptSource> prompt_source = PromptSource::Create(settings, SmallPolicy(settings));
  EXPECT_TRUE(prompt_source.ok()) << prompt_source.status().message();
  return *prompt_source->RequestFor(GroupId(7), PromptIndex(prompt));
}

TEST(PromptSourceTest, LengthsAreThePolicysUnlessAMeanPrescribesThem) {
  EXPECT_TRUE(RequestWith({}, 0).stop.lengths.empty());
}

TEST(PromptSourceTest, PrescribedLengthsDependOnSeedPromptAndMemberAlone) {
  const auto lengths = [](const std::string& method, const std::string& seed, int64_t prompt) {
    return RequestWith({"generation.mean_tokens=20", "run.seed=" + seed, method}, prompt)
        .stop.lengths;
  };
  const std::string pace = "admission.policy=pace";
  const std::string all = "admission.policy=accept_all";
  EXPECT_EQ(lengths(pace, "1", 3), lengths(all, "1", 3));
  EXPECT_NE(lengths(pace, "1", 3), lengths(pace, "1", 4));
  EXPECT_NE(lengths(pace, "1", 3), lengths(pace, "2", 3));
}

TEST(PromptSourceTest, PrescribedLengthsAreExponentialUpToTheLimit) {
  const Settings settings = SmallSettings(
      {"generation.mean_tokens=30", "generation.max_tokens=60", "batch.group_size=50"});
  const Result<PromptSource> prompt_source = PromptSource::Create(settings, SmallPolicy(settings));
  ASSERT_TRUE(prompt_source.ok()) << prompt_source.status().message();
  std::vector<int64_t> all;
  for (int64_t prompt = 0; prompt < 200; ++prompt) {
    const Result<GroupRequest> request = prompt_source->RequestFor(GroupId(0), PromptIndex(prompt));
    ASSERT_TRUE(request.ok());
    all.insert(all.end(), request->stop.lengths.begin(), request->stop.lengths.end());
  }
  ASSERT_EQ(all.size(), 10000U);
  const auto share_above = [&](int64_t length) {
    return static_cast<double>(std::ranges::count_if(all, [&](int64_t n) { return n > length; })) /
           static_cast<double>(all.size());
  };
  EXPECT_EQ(std::ranges::min(all), 1);
  EXPECT_EQ(std::ranges::max(all), 60);
  EXPECT_NEAR(share_above(30), 0.368, 0.015);
  EXPECT_NEAR(share_above(59), 0.140, 0.011);
}

TEST(PromptSourceTest, EpochsCountADatasetAndNothingElse) {
  const std::string path = std::string(PACE_BINARY_DIR) + "/prompt_source_epochs.jsonl";
  std::ofstream(path) << R"({"problem": "1+1", "answer": 2})" << "\n"
                      << R"({"problem": "1+2", "answer": 3})" << "\n";
  const Settings settings = SmallSettings({"task.kind=dataset", "task.file=" + path});
  const Result<PromptSource> prompt_source = PromptSource::Create(settings, SmallPolicy(settings));
  ASSERT_TRUE(prompt_source.ok()) << prompt_source.status().message();
  EXPECT_EQ(prompt_source->EpochOf(PromptIndex(0)), 0.5);
  EXPECT_EQ(prompt_source->EpochOf(PromptIndex(4)), 2.5);
  const Settings generated = SmallSettings({});
  EXPECT_FALSE(
      PromptSource::Create(generated, SmallPolicy(generated))->EpochOf(PromptIndex(9)).has_value());
}

}  // namespace
}  // namespace pace
