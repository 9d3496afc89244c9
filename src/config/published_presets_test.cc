// The published set-ups as facts, key by key: shared settings, task settings, evaluation.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "config/methods.h"
#include "config/settings.h"

namespace pace {
namespace {

using Facts = std::map<std::string, std::string>;

std::string ValueOf(Settings& settings, const std::string& key) {
  for (const Section& section : settings.Sections()) {
    for (const Field& field : section.fields) {
      if (section.name + "." + field.key() == key) return field.Get();
    }
  }
  return "no such key";
}

// `method` empty: the preset as it is.
void ExpectFacts(const std::string& preset, const std::string& method, const Facts& facts) {
  Result<Settings> settings = LoadSettings(preset, {});
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  if (!method.empty()) settings = ApplyMethod(*settings, method);
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  for (const auto& [key, value] : facts) {
    EXPECT_EQ(ValueOf(*settings, key), value) << preset << " " << method << " " << key;
  }
}

const Facts& SharedFacts() {
  static const Facts facts = {
      {"train.advantage", "grpo"},
      {"train.loss", "dapo"},
      {"train.loss_settings", R"(["clip_low=0.2", "clip_high=0.28", "dual_clip=10"])"},
      {"train.reduction", "token-mean"},
      {"train.ratio", "rollout"},
      {"train.correction", "none"},
      {"train.learning_rate", "1e-06"},
      {"train.beta1", "0.9"},
      {"train.beta2", "0.999"},
      {"train.max_grad_norm", "1"},
      {"train.kl_coef", "0"},
      {"train.kl_reward_coef", "0"},
      {"train.entropy_bonus", "0"},
      {"train.dynamic_sampling", "false"},
      {"generation.temperature", "1"},
      {"generation.top_p", "1"},
      {"generation.max_tokens", "8192"},
      {"prompt.max_tokens", "2048"},
      {"launch.engine", "vllm"},
      {"evaluation.num_responses", "32"},
      {"evaluation.temperature", "1"},
      {"run.evaluate_at_start", "false"},
      {"run.num_steps", "300"},
      {"policy.compute", "bf16"},
      {"admission.window", "512"},
      {"admission.min_observations", "32"},
      {"admission.max_budget", "0.9"},
      {"admission.gamma", "4"},
      {"prefix.min_tokens", "32"},
      {"supply.threshold", "8"},
      {"supply.sync_interval", "1"},
      {"cluster.tensor_parallel", "1"},
  };
  return facts;
}

Facts MathFacts() {
  Facts facts = SharedFacts();
  facts.insert({{"batch.num_groups", "12"},
                {"batch.group_size", "12"},
                {"batch.num_updates", "1"},
                {"train.weight_decay", "0.1"},
                {"train.warmup_updates", "10"},
                {"train.overlong_buffer", "4096"},
                {"train.overlong_penalty", "1"},
                {"task.verifier", "dapo-int"},
                {"tools.use", "none"},
                {"evaluation.top_p", "0.7"},
                {"run.evaluate_every", "50"},
                {"prefix.max_tokens", "1024"}});
  return facts;
}

TEST(PublishedPresetsTest, Math4b) {
  Facts facts = MathFacts();
  facts.insert({{"policy.model", "models/Qwen3-4B"},
                {"cluster.rollout_gpus", "4"},
                {"cluster.trainer_gpus", "2"}});
  ExpectFacts("math-4b", "", facts);
}

TEST(PublishedPresetsTest, Math8bKeepsEverySettingOfMath4bButTheLayout) {
  Facts facts = MathFacts();
  facts.insert({{"policy.model", "models/Qwen3-8B"},
                {"cluster.rollout_gpus", "12"},
                {"cluster.trainer_gpus", "4"}});
  ExpectFacts("math-8b", "", facts);
  facts["supply.threshold"] = "0";
  ExpectFacts("math-8b", "sync", facts);
}

TEST(PublishedPresetsTest, Retool4b) {
  Facts facts = SharedFacts();
  facts.insert({{"policy.model", "models/Qwen3-4B-Instruct-2507"},
                {"batch.num_groups", "8"},
                {"batch.group_size", "8"},
                {"batch.num_updates", "1"},
                {"train.weight_decay", "0.01"},
                {"train.warmup_updates", "0"},
                {"train.overlong_buffer", "0"},
                {"task.verifier", "retool"},
                {"evaluation.top_p", "0.6"},
                {"run.evaluate_every", "25"},
                {"prefix.max_tokens", "2048"},
                {"tools.use", "code_interpreter"},
                {"tools.max_assistant_turns", "8"},
                {"tools.max_tool_turns", "8"},
                {"tools.max_reply", "256"},
                {"tools.timeout", "30"},
                {"tools.memory_mib", "1024"},
                {"tools.max_programs", "16"},
                {"cluster.rollout_gpus", "4"},
                {"cluster.trainer_gpus", "2"}});
  ExpectFacts("retool-4b", "", facts);
  ExpectFacts("retool-4b", "effective", facts);
}

TEST(PublishedPresetsTest, Retool4bOfTheOtherMethods) {
  // Sync evaluates every 100 updates, which are 25 of its steps.
  ExpectFacts("retool-4b", "sync",
              {{"batch.num_groups", "32"},
               {"batch.num_updates", "4"},
               {"supply.threshold", "0"},
               {"run.evaluate_every", "25"},
               {"cluster.layout", "colocated"}});
  ExpectFacts("retool-4b", "async", {{"cluster.rollout_gpus", "2"}, {"cluster.trainer_gpus", "2"}});
}

TEST(PublishedPresetsTest, M2poHasTheBudgetOfItsPaperAndNoClipWidths) {
  for (const char* preset : {"math-4b", "math-8b", "retool-4b"}) {
    Result<Settings> settings = LoadSettings(preset, {});
    ASSERT_TRUE(settings.ok());
    settings = ApplyMethod(*settings, "m2po");
    ASSERT_TRUE(settings.ok()) << settings.status().message();
    EXPECT_EQ(settings->train.loss.kind, LossKind::kM2po);
    EXPECT_EQ(settings->train.loss.m2po.budget, 0.04);
    EXPECT_TRUE(settings->train.loss_settings.empty());
  }
}

TEST(PublishedPresetsTest, SixBenchmarks) {
  for (const char* preset : {"math-4b", "math-8b", "retool-4b"}) {
    const Result<Settings> settings = LoadSettings(preset, {});
    ASSERT_TRUE(settings.ok());
    EXPECT_EQ(settings->task.benchmarks,
              (std::vector<std::string>{"data/aime2023.jsonl", "data/aime2024.jsonl",
                                        "data/aime2025.jsonl", "data/beyondaime.jsonl",
                                        "data/brumo2025.jsonl", "data/hmmt_feb2025.jsonl"}));
  }
}

}  // namespace
}  // namespace pace
