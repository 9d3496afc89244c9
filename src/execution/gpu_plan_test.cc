#include "execution/gpu_plan.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;

ModelConfig Qwen4b() {
  ModelConfig config;
  config.architecture = Architecture::kQwen3;
  config.vocab_size = 151936;
  config.hidden_size = 2560;
  config.intermediate_size = 9728;
  config.num_layers = 36;
  config.num_heads = 32;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.tied = true;
  config.qk_norm = true;
  return config;
}

Settings Large() {
  Settings settings;
  settings.policy.device = PolicyDevice::kCuda;
  settings.policy.compute = ComputeType::kBfloat16;
  settings.train.recompute_layers = true;
  settings.train.token_budget = 16384;
  settings.engine.kv_mib = 20 * 1024;
  settings.engine.slots = 128;
  return settings;
}

TEST(GpuPlanTest, AFourBillionModelFitsBesideItsRollouts) {
  const GpuPlan plan = PlanGpu(Large(), Qwen4b(), 1);
  const double gibibytes = static_cast<double>(plan.TotalBytes()) / kGibibyte;
  EXPECT_GT(gibibytes, 90);
  EXPECT_LT(gibibytes, 125);
  EXPECT_TRUE(plan.Check(139 * kGibibyte).ok());
  EXPECT_EQ(plan.TrainingLimit(139 * kGibibyte) + plan.OtherBytes(), 139 * kGibibyte);
}

TEST(GpuPlanTest, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const GpuPlan plan = PlanGpu(Large(), Qwen4b(), 1);
  const Status status = plan.Check(80 * kGibibyte);
  ASSERT_FALSE(status.ok());
  for (const char* word : {"the GPU has 80.0", "moments 30.0", "KV caches 20.0", "engine.kv_mib",
                           "train.token_budget"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << word << ": " << status.message();
  }
}

TEST(GpuPlanTest, TheBoundOfTrainingIsItsShare) {
  Settings settings = Large();
  settings.train.memory_gib = 100;
  const GpuPlan plan = PlanGpu(settings, Qwen4b(), 1);
  EXPECT_EQ(plan.TrainingLimit(200 * kGibibyte), 100 * kGibibyte);
  EXPECT_TRUE(plan.Check(200 * kGibibyte).ok());
  EXPECT_FALSE(plan.Check(120 * kGibibyte).ok());
  settings.train.memory_gib = 40;
  const Status status = PlanGpu(settings, Qwen4b(), 1).Check(200 * kGibibyte);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.message().starts_with("train.memory_gib = 40.0: training needs"))
      << status.message();
}

TEST(GpuPlanTest, RanksThatShareAGpuDivideIt) {
  Settings settings = Large();
  settings.train.shard = ShardMode::kFull;
  const GpuPlan alone = PlanGpu(settings, Qwen4b(), 1);
  const GpuPlan apart = PlanGpu(settings, Qwen4b(), 1, {.num_ranks = 2, .ranks_on_gpu = 1});
  EXPECT_LT(apart.TrainingBytes(), alone.TrainingBytes());
  EXPECT_EQ(apart.OtherBytes(), alone.OtherBytes());
  const GpuPlan shared = PlanGpu(settings, Qwen4b(), 1, {.num_ranks = 2, .ranks_on_gpu = 2});
  EXPECT_EQ(shared.TrainingBytes(), apart.TrainingBytes());
  EXPECT_EQ(shared.TotalBytes(), 2 * shared.TrainingBytes() + shared.OtherBytes());
  EXPECT_GT(shared.OtherBytes(), apart.OtherBytes());  // two contexts
  const int64_t limit = shared.TrainingLimit(200 * kGibibyte);
  EXPECT_EQ(limit, (200 * kGibibyte - shared.OtherBytes()) / 2);
  const Status status = shared.Check(80 * kGibibyte);
  EXPECT_NE(status.message().find("2 trainer ranks share it"), std::string::npos)
      << status.message();
}

TEST(GpuPlanTest, EveryPartGrowsWithItsSetting) {
  const int64_t base = PlanGpu(Large(), Qwen4b(), 1).TotalBytes();
  const auto with = [](auto change) {
    Settings settings = Large();
    change(settings);
    return PlanGpu(settings, Qwen4b(), 1).TotalBytes();
  };
  EXPECT_GT(with([](Settings& s) { s.train.token_budget *= 2; }), base);
  EXPECT_GT(with([](Settings& s) { s.train.recompute_layers = false; }), base);
  EXPECT_GT(with([](Settings& s) { s.train.kl.loss_coefficient = 0.1; }), base);
  EXPECT_GT(with([](Settings& s) { s.engine.kv_mib += 1; }), base);
  EXPECT_GT(with([](Settings& s) { s.run.evaluate_every = 5; }), base);
  EXPECT_GT(with([](Settings& s) { s.policy.compute = ComputeType::kFloat32; }), base);
  EXPECT_GT(PlanGpu(Large(), Qwen4b(), 2).TotalBytes(), base);
  // Eight bits for few rows, beside bf16 for many.
  const int64_t matrices = int64_t{36} * (2 * 2560 * 4096 + 2 * 2560 * 1024 + 3 * 2560 * 9728);
  EXPECT_EQ(with([](Settings& s) { s.engine.quantization = EngineQuantization::kFp8; }),
            base + matrices);
  // Without a rebuild no states are kept for prefix scores.
  const auto states =
      static_cast<double>(base - with([](Settings& s) { s.engine.sync = SyncRule::kKeep; }));
  EXPECT_NEAR(states / kGibibyte, 20.0 * 2560 / (2 * 36 * 8 * 128), 1e-3);
}

TEST(GpuPlanTest, ServersElsewhereLeaveTheGpuToTheTrainer) {
  Settings settings = Large();
  settings.run.evaluate_every = 5;
  const GpuPlan plan = PlanGpu(settings, Qwen4b(), 0);
  for (const GpuPlan::Part& part : plan.rollouts) EXPECT_EQ(part.num_bytes, 0) << part.name;
}

TEST(GpuPlanTest, TheCpuNeedsNoPlan) {
  EXPECT_TRUE(PrepareGpu(Settings{}, Qwen4b()).ok());
}

}  // namespace
}  // namespace pace
