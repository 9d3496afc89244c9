#include "model/recompute_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/tiny_configs.h"

namespace pace {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 60;

ModelConfig Shape(int64_t num_layers) {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.num_layers = num_layers;
  config.hidden_size = 2560;
  config.num_heads = 32;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.intermediate_size = 9728;
  return config;
}

TEST(RecomputePlanTest, NothingIsKeptWithoutABudget) {
  const std::vector<int64_t> lengths = {100, 20};
  for (const KeptParts& parts : PlanRecompute(Shape(3), lengths, 0)) {
    EXPECT_EQ(parts, KeptParts{});
  }
}

TEST(RecomputePlanTest, EverythingIsKeptWithoutALimit) {
  const std::vector<int64_t> lengths = {100, 20};
  const ModelConfig config = Shape(3);
  const std::vector<KeptParts> plan = PlanRecompute(config, lengths, kNoLimit);
  const KeptParts all = {.qkv = true, .attention = true, .output = true, .gate_up = true};
  EXPECT_EQ(plan, std::vector<KeptParts>(3, all));
  // Rows of qkv, of the attention's output with one statistic per head, of the sum, of gates and
  // ups.
  constexpr int64_t kRow = 2 * 6144 + 2 * 4096 + 4 * 32 + 2 * 2560 + 4 * 9728;
  EXPECT_EQ(KeptBytes(config, lengths, plan), 3 * int64_t{120} * kRow);
}

TEST(RecomputePlanTest, ExpertsAreNotKept) {
  const ModelConfig config = TinyModel(Architecture::kQwen3Moe);
  const std::vector<int64_t> lengths = {8};
  for (int64_t layer = 0; const KeptParts& parts : PlanRecompute(config, lengths, kNoLimit)) {
    EXPECT_EQ(parts.gate_up, !config.IsSparse(layer++));
    EXPECT_TRUE(parts.attention);
  }
}

// The order of parts, and the last layers first: every budget keeps what a smaller one kept of the
// earlier parts.
TEST(RecomputePlanTest, TheBudgetHoldsAndGoesWhereAByteSavesMost) {
  const ModelConfig config = Shape(4);
  const std::vector<int64_t> lengths(8, 2048);
  const int64_t whole = KeptBytes(config, lengths, PlanRecompute(config, lengths, kNoLimit));
  const auto count = [](const std::vector<KeptParts>& plan, bool KeptParts::* part) {
    return std::ranges::count(plan, true, part);
  };
  for (int64_t share = 0; share <= 100; ++share) {
    const int64_t budget = whole * share / 100;
    const std::vector<KeptParts> plan = PlanRecompute(config, lengths, budget);
    EXPECT_LE(KeptBytes(config, lengths, plan), budget);
    // Attention costs twice its operations: 2 x 2,048 per byte, as the sum's 4,096; then 2,560.
    if (count(plan, &KeptParts::qkv) > 0) {
      EXPECT_EQ(count(plan, &KeptParts::attention), 4);
    }
    if (count(plan, &KeptParts::gate_up) > 0) {
      EXPECT_EQ(count(plan, &KeptParts::output), 4);
    }
    for (size_t layer = 1; layer < plan.size(); ++layer) {
      EXPECT_GE(plan[layer].attention, plan[layer - 1].attention) << share;
    }
  }
}

// Inputs of 36 layers and the head's gradient, and with them either a layer or a part of the
// logits.
TEST(RecomputePlanTest, APassHoldsALayerOrLogits) {
  ModelConfig config = Shape(36);
  config.vocab_size = 151936;
  const auto least = [&](int64_t rows) {
    return rows * 36 * 2560 * 2 + config.vocab_size * 2560 * 4;
  };
  constexpr int64_t kParameters = int64_t{2560} * (4096 + 6144 + 3 * 9728);
  EXPECT_EQ(PassBytes(config, 16384) - least(16384),
            int64_t{16384} * 2 * (4 * 2560 + 3 * 6144 + 6 * 9728) + 6 * kParameters);
  EXPECT_EQ(PassBytes(config, 1000) - least(1000),
            int64_t{1000} * config.vocab_size * 6 + config.vocab_size * 2560 * 2);
}

TEST(RecomputePlanTest, ShortSequencesKeepAttentionLast) {
  const ModelConfig config = Shape(1);
  const std::vector<int64_t> lengths(1000, 16);
  const int64_t rows = 16000;
  const int64_t budget = rows * 2 * (2560 + 6144);  // the sum and qkv
  const KeptParts expected = {.qkv = true, .output = true};
  EXPECT_EQ(PlanRecompute(config, lengths, budget).front(), expected);
}

TEST(PassSizesTest, ChangeUntilThreePassesInARowWereEqual) {
  PassSizes sizes;
  EXPECT_TRUE(sizes.Change(16));
  EXPECT_TRUE(sizes.Change(16));
  EXPECT_TRUE(sizes.Change(16));
  EXPECT_FALSE(sizes.Change(16));
  EXPECT_FALSE(sizes.Change(16));
  EXPECT_TRUE(sizes.Change(17));
  EXPECT_TRUE(sizes.Change(16));
}

}  // namespace
}  // namespace pace
