#include "train/shard_layout.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pace {
namespace {

const std::map<std::string, std::vector<int64_t>> kShapes = {
    {"lm_head.weight", {53, 7}},
    {"model.embed_tokens.weight", {53, 7}},
    {"model.layers.0.input_layernorm.weight", {7}},
    {"model.layers.0.mlp.experts.10.up_proj.weight", {5, 7}},
    {"model.layers.1.input_layernorm.weight", {7}},
    {"model.layers.10.input_layernorm.weight", {7}},
    {"model.norm.weight", {7}},
};

TEST(ShardLayoutTest, AUnitIsALayerOrWhatIsOutsideOfLayers) {
  const ShardLayout layout = LayOutShards(kShapes, 11, 2);
  ASSERT_EQ(layout.units.size(), 12U);
  EXPECT_EQ(layout.units[0].slots.size(), 2U);
  EXPECT_EQ(layout.units[1].slots.size(), 1U);
  EXPECT_EQ(layout.units[10].slots.front().name, "model.layers.10.input_layernorm.weight");
  EXPECT_EQ(layout.units[11].slots.size(), 3U);
}

TEST(ShardLayoutTest, TheRanksSlicesCoverEveryElementOnce) {
  for (const int64_t num_ranks : {1, 2, 3, 4, 7}) {
    const ShardLayout layout = LayOutShards(kShapes, 11, num_ranks);
    std::map<std::string, std::vector<int>> seen;
    for (const auto& [name, shape] : kShapes) {
      seen[name].assign(static_cast<size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1)), 0);
    }
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      for (const ShardSlice& slice : layout.Slices(rank)) {
        const ShardUnit& unit = layout.units[slice.unit];
        const ShardSlot& slot = unit.slots[slice.slot];
        // The same element, seen from the part and from the parameter.
        EXPECT_EQ(rank * unit.part_size + slice.in_part, slot.offset + slice.in_parameter);
        EXPECT_LE(slice.in_part + slice.count, unit.part_size);
        for (int64_t i = 0; i < slice.count; ++i) {
          ++seen[slot.name][static_cast<size_t>(slice.in_parameter + i)];
        }
      }
    }
    for (const auto& [name, counts] : seen) {
      EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int c) { return c == 1; })) << name;
    }
  }
}

}  // namespace
}  // namespace pace
