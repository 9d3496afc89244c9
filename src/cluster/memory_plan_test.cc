#include "cluster/memory_plan.h"

#include <gtest/gtest.h>

#include "cluster/model_shape.h"

namespace pace {
namespace {

Settings Load(const std::string& preset, const std::vector<std::string>& overrides = {}) {
  Result<Settings> settings = LoadSettings(preset, overrides);
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  return settings.ok() ? *settings : Settings();
}

int64_t BytesOf(const std::vector<MemoryPart>& parts, std::string_view name) {
  for (const MemoryPart& part : parts) {
    if (part.name == name) return part.num_bytes;
  }
  return 0;
}

// Weights, gradients and moments, in decimal gigabytes.
double StateGigabytes(const std::string& preset, ShardMode shard) {
  const Settings settings = Load(preset);
  const std::vector<MemoryPart> parts =
      RankMemory(NetworkOf(settings.model), RankMemoryOf(settings, shard));
  int64_t sum = 0;
  for (const char* name : {"weights", "gradients", "moments"}) {
    sum += BytesOf(parts, name);
  }
  return static_cast<double>(sum) * 1e-9;
}

TEST(MemoryPlanTest, StateOfThePublishedLayouts) {
  // 4.02e9 parameters, 0.39e9 of them outside of layers, on 2 ranks: 4 bytes of each are weights,
  // 8 are moments.
  EXPECT_NEAR(StateGigabytes("math-4b", ShardMode::kOptimizer), 16.1 + 16.1 + 17.6, 0.5);
  EXPECT_NEAR(StateGigabytes("math-4b", ShardMode::kGradients), 16.1 + 16.1 + 11.2, 0.5);
  EXPECT_NEAR(StateGigabytes("math-4b", ShardMode::kFull), 10.0 + 16.1 + 11.2, 0.5);
  // 8.19e9, 1.24e9 of them outside, on 4.
  EXPECT_NEAR(StateGigabytes("math-8b", ShardMode::kOptimizer), 32.8 + 16.4 + 37.7, 0.5);
  EXPECT_NEAR(StateGigabytes("math-8b", ShardMode::kGradients), 32.8 + 16.4 + 18.2, 0.5);
  EXPECT_NEAR(StateGigabytes("math-8b", ShardMode::kFull), 13.9 + 16.4 + 18.2, 0.5);
}

TEST(MemoryPlanTest, EveryShardOfSeveralRanksTogetherIsOneRanksState) {
  const NetworkSize network = NetworkOf(Load("tiny").model);
  const std::vector<MemoryPart> whole = RankMemory(network, {.in_bf16 = false});
  EXPECT_EQ(BytesOf(whole, "weights"), 4 * network.num_parameters);
  EXPECT_EQ(BytesOf(whole, "moments"), 8 * network.num_parameters);
  EXPECT_EQ(BytesOf(whole, "gradients"), 4 * network.num_parameters);
  for (const int64_t ranks : {2, 3, 4, 7}) {
    for (const ShardMode shard : {ShardMode::kOptimizer, ShardMode::kGradients, ShardMode::kFull}) {
      const std::vector<MemoryPart> parts =
          RankMemory(network, {.num_ranks = ranks, .shard = shard, .in_bf16 = false});
      EXPECT_GE(ranks * BytesOf(parts, "moments"), BytesOf(whole, "moments"));
      EXPECT_LT(ranks * BytesOf(parts, "moments"), BytesOf(whole, "moments") + 8 * ranks);
      const bool is_full = shard == ShardMode::kFull;
      EXPECT_EQ(BytesOf(parts, "weights") < BytesOf(whole, "weights"), is_full);
    }
  }
}

TEST(MemoryPlanTest, LayersAndTheRestAreAllParameters) {
  for (const char* preset : {"tiny", "math-4b", "math-8b", "moe-30b"}) {
    const ModelOptions model = Load(preset).model;
    const NetworkSize network = NetworkOf(model);
    ModelOptions one = model;
    one.num_layers = 1;
    const NetworkSize shorter = NetworkOf(one);
    EXPECT_EQ(network.num_parameters - shorter.num_parameters,
              (model.num_layers - 1) * network.layer_parameters);
    EXPECT_EQ(shorter.layer_parameters, network.layer_parameters);
  }
}

TEST(MemoryPlanTest, ThePublishedLayoutsFitCardsOf80Gigabytes) {
  for (const char* preset : {"math-4b", "math-8b", "retool-4b"}) {
    const Settings settings = Load(preset);
    const Result<ShardMode> shard = ChooseSharding(settings);
    ASSERT_TRUE(shard.ok()) << preset << ": " << shard.status().message();
    EXPECT_EQ(ShardModeName(*shard), preset == std::string("math-8b") ? "full" : "optimizer");
    const Status status = CheckLayoutMemory(settings);
    EXPECT_TRUE(status.ok()) << preset << ": " << status.message();
  }
}

TEST(MemoryPlanTest, WhatCannotFitIsRefusedWithTheNumbers) {
  const auto refusal = [](const std::vector<std::string>& overrides) {
    return CheckLayoutMemory(Load("math-8b", overrides)).message();
  };
  const std::string one = refusal({"cluster.trainer_gpus=1"});
  EXPECT_EQ(one.find("the trainer needs "), 0U) << one;
  EXPECT_NE(one.find("weights 30.5, moments 61.0, gradients 30.5"), std::string::npos) << one;
  const std::string two = refusal({"cluster.trainer_gpus=2"});
  EXPECT_EQ(two.find("each of 2 trainer ranks with train.shard = full needs "), 0U) << two;
  EXPECT_NE(two.find(" GiB, a GPU has 80.0 ("), std::string::npos) << two;
  EXPECT_NE(two.find("cluster.trainer_gpus"), std::string::npos) << two;
  const std::string small = refusal({"gpu.memory_gib=24", "cluster.trainer_gpus=16"});
  EXPECT_EQ(small.find("each of 16"), 0U) << small;
  const std::string engine = refusal({"cluster.memory_share=0.15"});
  EXPECT_EQ(engine.find("a GPU of an engine (cluster.memory_share = 0.15) needs "), 0U) << engine;
  EXPECT_NE(engine.find("weights 15.3, KV cache 1.4"), std::string::npos) << engine;
  // Memory of a CPU run is not planned.
  EXPECT_EQ(refusal({"cluster.trainer_gpus=1", "device=cpu"}), "");
}

TEST(MemoryPlanTest, RecomputingLayersAndFewerTokensNeedLess) {
  const NetworkSize network = NetworkOf(Load("math-4b").model);
  const auto total = [&](RankMemoryOptions options) {
    return TotalBytes(RankMemory(network, options));
  };
  EXPECT_LT(total({.recompute_layers = true}), total({}));
  EXPECT_LT(total({.tokens = 1024}), total({}));
  EXPECT_LT(total({.in_bf16 = true}), total({.in_bf16 = false, .has_initial_policy = true}));
}

TEST(MemoryPlanTest, EveryServerOverNcclNeedsABuffer) {
  Settings settings = Load("math-8b");
  const auto total = [&](ShardMode shard) {
    return TotalBytes(RankMemory(NetworkOf(settings.model), RankMemoryOf(settings, shard)));
  };
  const int64_t folder = total(ShardMode::kGradients);
  const int64_t full = total(ShardMode::kFull);
  settings.engine.transfer = WeightTransfer::kNccl;
  settings.engine.transfer_mib = 64;
  EXPECT_GT(total(ShardMode::kGradients), folder + 12 * (int64_t{64} << 20));
  EXPECT_GT(total(ShardMode::kFull) - full, total(ShardMode::kGradients) - folder);
}

TEST(MemoryPlanTest, EachKindOfShardNeedsLess) {
  for (const char* preset : {"math-4b", "math-8b"}) {
    const NetworkSize network = NetworkOf(Load(preset).model);
    int64_t before = TotalBytes(RankMemory(network, {.num_ranks = 4}));
    for (const ShardMode shard : {ShardMode::kOptimizer, ShardMode::kGradients, ShardMode::kFull}) {
      const int64_t now = TotalBytes(RankMemory(network, {.num_ranks = 4, .shard = shard}));
      EXPECT_LT(now, before) << preset << " " << ShardModeName(shard);
      before = now;
    }
  }
}

}  // namespace
}  // namespace pace
