// The plan of the persistent kernel: every weight and every page is streamed exactly once.
#include "model/cuda/decode/layers_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/cuda/decode/attention_units.h"

namespace pace::cuda {
namespace {

constexpr int kSharedBytes = 232448;  // of an H200's block

struct Case {
  LayersShape shape;
  int num_processors = 132;
};

std::vector<Case> Cases() {
  const LayersShape small = {.num_rows = 1,
                             .hidden = 1024,
                             .intermediate = 3072,
                             .num_heads = 16,
                             .num_kv_heads = 8,
                             .head_dim = 128};
  const LayersShape odd = {.num_rows = 1,
                           .hidden = 576,
                           .intermediate = 1536,
                           .num_heads = 9,
                           .num_kv_heads = 3,
                           .head_dim = 64};
  const LayersShape wide = {.num_rows = 1,
                            .hidden = 2560,
                            .intermediate = 9728,
                            .num_heads = 32,
                            .num_kv_heads = 8,
                            .head_dim = 128};
  std::vector<Case> all;
  for (LayersShape shape : {small, odd, wide}) {
    for (const int num_rows : {1, 2}) {
      shape.num_rows = num_rows;
      for (const int num_processors : {132, 78, 24}) {
        for (const int weight_bytes : {2, 1}) {
          shape.weight_bytes = weight_bytes;
          all.push_back({.shape = shape, .num_processors = num_processors});
        }
      }
    }
  }
  return all;
}

int NumMatrixRows(const ProductPlan& plan) {
  return plan.num_outputs * plan.rows_per_output;
}

void ExpectEveryWeightOnce(const ProductPlan& plan, const LayersPlan& whole) {
  const int steps = plan.num_inputs / kInputStep;
  std::vector<int> times(static_cast<size_t>(NumMatrixRows(plan)) * static_cast<size_t>(steps));
  for (int block = 0; block < whole.num_blocks; ++block) {
    const OutputRange range = OutputsOf(plan, block, whole.num_blocks);
    ASSERT_EQ(range.first % 2, 0);
    ASSERT_EQ(range.count % 2, 0);
    const int num_tiles = (range.count + plan.tile_rows - 1) / plan.tile_rows;
    for (int i = 0; i < num_tiles * plan.rows_per_output; ++i) {
      const int first = i / plan.rows_per_output * plan.tile_rows;
      const Tile tile = TileOf(plan, range, first, i % plan.rows_per_output);
      ASSERT_GT(tile.count, 0);
      ASSERT_LE(tile.count, kTileRows);
      ASSERT_LE(tile.first + tile.count, range.count);
      for (int k = 0; k < plan.num_inputs; k += plan.chunk) {
        const int length = std::min(plan.chunk, plan.num_inputs - k);
        ASSERT_EQ(length % kInputStep, 0);
        // Lanes without a row read one of the tile, which lies within the slot.
        ASSERT_LE((tile.count - 1) * StageStride(plan) + plan.weight_bytes * length,
                  whole.slot_bytes);
        ASSERT_EQ(plan.weight_bytes * length % 16, 0);
        ASSERT_LT(k / plan.chunk, plan.num_chunks);
        for (int row = tile.row; row < tile.row + tile.count; ++row) {
          ASSERT_LT(row, NumMatrixRows(plan));
          for (int step = k / kInputStep; step < (k + length) / kInputStep; ++step) {
            ++times[static_cast<size_t>(row) * static_cast<size_t>(steps) +
                    static_cast<size_t>(step)];
          }
        }
      }
    }
  }
  EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 1; }));
}

TEST(LayersPlanTest, EveryWeightIsStreamedOnce) {
  for (const Case& one : Cases()) {
    const auto plan = PlanLayers(one.shape, one.num_processors, kSharedBytes);
    ASSERT_TRUE(plan) << one.shape.hidden << " on " << one.num_processors;
    for (const ProductPlan& product : plan->products) ExpectEveryWeightOnce(product, *plan);
  }
}

TEST(LayersPlanTest, SharedMemoryHoldsEveryPart) {
  for (const Case& one : Cases()) {
    const auto plan = PlanLayers(one.shape, one.num_processors, kSharedBytes);
    ASSERT_TRUE(plan);
    EXPECT_LE(plan->shared_bytes, kSharedBytes);
    EXPECT_EQ(plan->ring % 128, 0);
    EXPECT_EQ(plan->slot_bytes % 128, 0);
    EXPECT_LE(plan->slot_pages * 4 * PageElements(one.shape.head_dim), plan->slot_bytes);
    const auto largest = [&](const ProductPlan& product) {
      int most = 0;
      for (int block = 0; block < plan->num_blocks; ++block) {
        most = std::max(most, OutputsOf(product, block, plan->num_blocks).count);
      }
      return most;
    };
    const int rows = one.shape.num_rows;
    for (const ProductPlan& product : plan->products) {
      const int num_rows = rows * product.rows_per_output * largest(product);
      EXPECT_LE(product.rows_per_output * largest(product), plan->max_rows);
      EXPECT_LE(plan->sums + 4 * num_rows * SumStride(product), plan->own_residual);
    }
    EXPECT_LE(plan->own_residual + 4 * rows * largest(plan->products[kOutputProduct]),
              plan->scales);
    const bool has_scales = one.shape.weight_bytes == 1;
    EXPECT_LE(plan->scales + (has_scales ? 8 * plan->max_rows : 0), plan->heads);
    EXPECT_LE(plan->heads + 2 * (kMaxHeadGroup + 2) * one.shape.head_dim, plan->work);
    EXPECT_LE(plan->work + rows * (2 * one.shape.intermediate + kInputPad), plan->ring);
  }
}

TEST(LayersPlanTest, UnitsCoverEveryContextOnce) {
  for (const Case& one : Cases()) {
    const auto plan = PlanLayers(one.shape, one.num_processors, kSharedBytes);
    ASSERT_TRUE(plan);
    const int rows = one.shape.num_rows;
    const int heads = one.shape.num_kv_heads;
    for (const int pages : {1, 2, 4, 5, 32, 33, 257, 2048}) {
      const int num_pages[kMaxLayersRows] = {pages, 3 * pages / 2 + 1};
      const int num_units = NumUnits(num_pages, rows, heads, plan->max_splits);
      EXPECT_LE(num_units, one.num_processors);
      for (const int layer : {0, 1, 35, 1000}) {
        std::vector<std::vector<int>> times(static_cast<size_t>(rows * heads));
        std::vector<int> newest(times.size());
        int found = 0;
        for (int block = 0; block < one.num_processors; ++block) {
          const AttentionUnit unit =
              UnitOf(num_pages, rows, heads, plan->max_splits, layer, block, one.num_processors);
          if (!unit.is_there) continue;
          ++found;
          ASSERT_LT(unit.row, rows);
          ASSERT_LT(unit.kv_head, heads);
          ASSERT_LT(unit.first_page, unit.end_page);
          const auto at = static_cast<size_t>(unit.row) * static_cast<size_t>(heads) +
                          static_cast<size_t>(unit.kv_head);
          times[at].resize(static_cast<size_t>(num_pages[unit.row]));
          for (int page = unit.first_page; page < unit.end_page; ++page) {
            ++times[at].at(static_cast<size_t>(page));
          }
          if (unit.is_last) {
            ++newest[at];
            EXPECT_EQ(unit.end_page, num_pages[unit.row]);
          }
        }
        EXPECT_EQ(found, num_units);
        for (size_t at = 0; at < times.size(); ++at) {
          EXPECT_FALSE(times[at].empty());
          EXPECT_TRUE(std::ranges::all_of(times[at], [](int n) { return n == 1; }));
          EXPECT_EQ(newest[at], 1);
        }
      }
    }
  }
}

TEST(LayersPlanTest, RefusesOtherShapes) {
  const LayersShape shape = {.num_rows = 1,
                             .hidden = 1024,
                             .intermediate = 3072,
                             .num_heads = 16,
                             .num_kv_heads = 8,
                             .head_dim = 128};
  const auto refuses = [&](auto change, int num_processors = 132, int bytes = kSharedBytes) {
    LayersShape other = shape;
    change(other);
    return !PlanLayers(other, num_processors, bytes);
  };
  EXPECT_FALSE(refuses([](LayersShape&) {}));
  EXPECT_TRUE(refuses([](LayersShape& s) { s.num_rows = 3; }));
  EXPECT_TRUE(refuses([](LayersShape& s) { s.head_dim = 32; }));
  EXPECT_TRUE(refuses([](LayersShape& s) { s.num_heads = 72; }));
  EXPECT_TRUE(refuses([](LayersShape& s) { s.num_heads = 15; }));
  EXPECT_TRUE(refuses([](LayersShape& s) { s.hidden = 1000; }));
  EXPECT_TRUE(refuses([](LayersShape& s) { s.hidden = 8192; }));
  EXPECT_TRUE(refuses([](LayersShape& s) { s.intermediate = 3000; }));
  EXPECT_TRUE(refuses([](LayersShape&) {}, 7));
  EXPECT_TRUE(refuses([](LayersShape&) {}, 132, 48 * 1024));
}

}  // namespace
}  // namespace pace::cuda
