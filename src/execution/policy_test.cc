#include "execution/policy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/model_config_json.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

fs::path Scratch(const std::string& name) {
  const fs::path folder = fs::path(PACE_BINARY_DIR) / "policy_scratch" / name;
  fs::remove_all(folder);
  return folder;
}

TEST(PolicyTest, ACheckpointKeepsWhatTheSourceSaysOfItself) {
  const Result<Policy> tiny = LoadPolicy({});
  ASSERT_TRUE(tiny.ok()) << tiny.status().message();
  const fs::path source = Scratch("source");
  ASSERT_TRUE(SavePolicy(source.string(), *tiny, tiny->weights, Dtype::kBF16).ok());
  std::string config = ReadAll(source / "config.json");
  config.insert(config.find('{') + 1, R"("transformers_version": "4.51.0",)");
  std::ofstream(source / "config.json") << config;
  const std::string generation =
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "eos_token_id": [1]})";
  std::ofstream(source / "generation_config.json") << generation;

  PolicyOptions options;
  options.model = source.string();
  const Result<Policy> policy = LoadPolicy(options);
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  const fs::path saved = Scratch("saved");
  ASSERT_TRUE(SavePolicy(saved.string(), *policy, policy->weights, Dtype::kF32).ok());
  EXPECT_NE(ReadAll(saved / "config.json").find(R"("transformers_version": "4.51.0")"),
            std::string::npos);
  EXPECT_EQ(ReadAll(saved / "generation_config.json"), generation);
  const Result<ModelConfig> read = ReadModelConfig(saved.string());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->dtype, Dtype::kF32);
  EXPECT_EQ(read->eos, policy->config.eos);
}

TEST(PolicyTest, EveryBuiltInModelLoadsWithItsTokenizer) {
  for (const std::string name : {"tiny", "tiny-retool"}) {
    PolicyOptions options;
    options.model = name;
    const Result<Policy> policy = LoadPolicy(options);
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    EXPECT_EQ(policy->config.vocab_size, policy->tokenizer.num_ids()) << name;
    EXPECT_EQ(policy->chat_template.has_value(), name == "tiny-retool") << name;
    EXPECT_TRUE(CheckFinite(policy->weights).ok()) << name;
  }
}

TEST(PolicyTest, AFolderThatCannotBeReadIsAnError) {
  PolicyOptions options;
  options.model = std::string(5000, 'x');
  EXPECT_FALSE(LoadPolicy(options).ok());
}

}  // namespace
}  // namespace pace
