#include "model/reference_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/test_data.h"
#include "core/test_files.h"
#include "model/model_config_json.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

using Json = nlohmann::json;

// The largest difference from the logits of one case.
double LargestDifference(const ReferenceResult& ours, const Json& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.at("logits").size(); ++i) {
    const auto position = expected.at("logits_positions")[i].get<size_t>();
    const auto logits = expected.at("logits")[i].get<std::vector<double>>();
    for (size_t token = 0; token < logits.size(); ++token) {
      largest = std::max(largest, std::abs(ours.logits[position][token] - logits[token]));
    }
  }
  return largest;
}

TEST(ReferenceForwardTest, AgreesWithTheReferenceData) {
  const std::filesystem::path models = SharedData() / "models";
  if (!std::filesystem::exists(models)) GTEST_SKIP() << WithoutData(models, 20);
  int num_cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const Result<ModelConfig> config = ReadModelConfig(entry.path().string());
    ASSERT_TRUE(config.ok()) << config.status().message();
    const Result<WeightSet> weights = WeightSet::Load(*config, entry.path().string());
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    const Json expected = Json::parse(ReadFile(entry.path() / "expected.json"));
    for (const Json& one : expected.at("cases")) {
      const auto tokens = one.at("input_ids").get<std::vector<TokenId>>();
      const ReferenceResult ours = ReferenceForward(*config, *weights, tokens);
      EXPECT_LT(LargestDifference(ours, one), 5e-5) << entry.path() << one.at("name");
      ++num_cases;
    }
  }
  EXPECT_GT(num_cases, 0);
}

TEST(ReferenceForwardTest, ATokenSeesNoLaterOne) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 5, 0.3);
    const std::vector<TokenId> tokens = {1, 7, 3, 50, 7};
    const ReferenceResult whole = ReferenceForward(tiny.config, weights, tokens);
    const ReferenceResult part = ReferenceForward(tiny.config, weights, std::span(tokens).first(3));
    EXPECT_EQ(part.logits.back(), whole.logits[2]) << tiny.name;
  }
}

}  // namespace
}  // namespace pace
