// Attention with tensor cores against the plain one.
#include "model/cuda/decode/attention_kernels.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "model/cuda/test_device.h"

namespace pace::cuda {
namespace {

TEST(CacheLayoutTest, EveryElementHasItsOwnIndex) {
  for (const int dim : {16, 32, 64, 128}) {
    std::set<int> keys;
    std::set<int> values;
    for (int token = 0; token < kPageTokens; ++token) {
      for (int d = 0; d < dim; ++d) {
        keys.insert(KeyIndex(token, d));
        values.insert(ValueIndex(token, d));
      }
    }
    for (const std::set<int>& indices : {keys, values}) {
      EXPECT_EQ(std::ssize(indices), PageElements(dim));
      EXPECT_EQ(*indices.begin(), 0);
      EXPECT_EQ(*indices.rbegin(), PageElements(dim) - 1);
    }
  }
}

// Runs plain attention and another kernel over the same random cache.
class AttentionPair {
 public:
  explicit AttentionPair(const Sequences& s, double query_scale = 1)
      : s_(s),
        queries_(Halves(PaddedQueries(s, query_scale))),
        cache_(Halves(Random(s.cache_elements(), 11))),
        positions_(s.positions),
        tables_(s.tables),
        blocks_(s.blocks),
        out_(s.num_rows() * width()) {}

  AttentionArguments Arguments() const {
    return {.queries = queries_.get(),
            .num_heads = s_.num_heads,
            .rows = {.tokens = nullptr,
                     .positions = positions_.get(),
                     .tables = tables_.get(),
                     .blocks = blocks_.get()},
            .cache = {.at = cache_.get(),
                      .element = Element::kHalf,
                      .num_kv_heads = s_.num_kv_heads,
                      .head_dim = s_.head_dim},
            .out = out_.get(),
            .out_stride = static_cast<int64_t>(width())};
  }
  Floats Plain() const {
    PlainAttention(Arguments(), static_cast<int64_t>(s_.num_rows()), nullptr);
    return FromHalves(out_.Read());
  }
  Floats Other(const std::function<void(const AttentionArguments&)>& run) const {
    EXPECT_EQ(cudaMemset(out_.get(), 0xFF, s_.num_rows() * width() * 2), cudaSuccess);
    run(Arguments());
    return FromHalves(out_.Read());
  }

 private:
  size_t width() const { return static_cast<size_t>(s_.num_heads * s_.head_dim); }
  static Floats PaddedQueries(const Sequences& s, double scale) {
    const auto padded = static_cast<size_t>(s.padded());
    Floats queries = Random(s.num_rows() * static_cast<size_t>(s.num_heads) * padded, 10, scale);
    for (size_t i = 0; i < queries.size(); ++i) {
      if (i % padded >= static_cast<size_t>(s.head_dim)) queries[i] = 0;
    }
    return queries;
  }

  const Sequences& s_;
  OnDevice<uint16_t> queries_;
  OnDevice<uint16_t> cache_;
  OnDevice<int32_t> positions_;
  OnDevice<int32_t> tables_;
  OnDevice<int32_t> blocks_;
  OnDevice<uint16_t> out_;
};

struct HeadShape {
  int num_heads;
  int num_kv_heads;
  int head_dim;
};
constexpr HeadShape kHeadShapes[] = {{4, 2, 6},    {3, 1, 32},  {9, 3, 64}, {32, 8, 128},
                                     {16, 8, 128}, {24, 2, 64}, {4, 4, 20}};

TEST_F(CudaKernelsTest, DecodeAttentionEqualsThePlainOne) {
  for (const HeadShape& shape : kHeadShapes) {
    const Sequences s =
        Sequences::Of({{0, 1}, {14, 1}, {15, 1}, {16, 1}, {63, 1}, {64, 1}, {301, 1}, {1500, 1}},
                      shape.num_heads, shape.num_kv_heads, shape.head_dim);
    const AttentionPair pair(s);
    const Floats plain = pair.Plain();
    const std::vector<int32_t> order = {7, 0, 6, 1, 5, 2, 4, 3};
    const OnDevice<int32_t> which(order);
    for (const int splits : {1, 3, 16, 32}) {
      const OnDevice<float> partial(
          static_cast<size_t>(DecodePartialFloats(8, shape.num_heads, shape.head_dim, splits)));
      const OnDevice<int32_t> finished(static_cast<size_t>(8 * shape.num_heads));
      for (int again = 0; again < 2; ++again) {
        const Floats fast = pair.Other([&](const AttentionArguments& arguments) {
          DecodeAttention(
              arguments, which.get(), 8,
              {.num_splits = splits, .partial = partial.get(), .finished = finished.get()},
              nullptr);
        });
        EXPECT_LT(Distance(fast, plain), 5e-3)
            << shape.num_heads << ", " << shape.head_dim << ", " << splits;
      }
    }
  }
}

TEST_F(CudaKernelsTest, RotatingOnTheWayChangesNothing) {
  for (const HeadShape& shape : kHeadShapes) {
    if (!CanRotateAndAttend(shape.num_heads, shape.num_kv_heads)) continue;
    const Sequences s = Sequences::Of({{0, 1}, {15, 1}, {16, 1}, {70, 1}, {400, 1}},
                                      shape.num_heads, shape.num_kv_heads, shape.head_dim);
    const int width = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
    const OnDevice<float> qkv(Random(s.num_rows() * static_cast<size_t>(width), 12));
    const OnDevice<float> norm(Random(static_cast<size_t>(shape.head_dim), 13));
    const OnDevice<float> frequencies(Random(static_cast<size_t>(shape.head_dim / 2), 14, 0.3));
    const OnDevice<uint16_t> queries(s.num_rows() *
                                     static_cast<size_t>(shape.num_heads * s.padded()));
    const OnDevice<int32_t> which(std::vector<int32_t>{3, 1, 0, 4, 2});
    const AttentionPair pair(s);
    RotateArguments rotate = {.qkv = qkv.get(),
                              .qkv_stride = width,
                              .q_norm = norm.get(),
                              .k_norm = norm.get(),
                              .epsilon = 1e-6F,
                              .frequencies = frequencies.get(),
                              .num_heads = shape.num_heads,
                              .num_rows = 5,
                              .rows = pair.Arguments().rows,
                              .cache = pair.Arguments().cache,
                              .queries = queries.get()};
    const OnDevice<float> partial(
        static_cast<size_t>(DecodePartialFloats(5, shape.num_heads, shape.head_dim, 8)));
    const OnDevice<int32_t> finished(static_cast<size_t>(5 * shape.num_heads));
    const DecodeSplits splits = {
        .num_splits = 8, .partial = partial.get(), .finished = finished.get()};
    // The joint one first: what it leaves in the cache is what Rotate writes.
    const Floats joint = pair.Other([&](const AttentionArguments& arguments) {
      RotateAndAttend(arguments, rotate, which.get(), 5, splits, nullptr);
    });
    const Floats apart = pair.Other([&](AttentionArguments arguments) {
      Rotate(rotate, nullptr);
      arguments.queries = queries.get();
      DecodeAttention(arguments, which.get(), 5, splits, nullptr);
    });
    EXPECT_EQ(joint, apart) << shape.num_heads << ", " << shape.head_dim;
  }
}

TEST_F(CudaKernelsTest, TileAttentionEqualsThePlainOne) {
  for (const HeadShape& shape : kHeadShapes) {
    const std::vector<std::pair<int, int>> chunks = {{0, 2},   {0, 17},   {5, 40},  {100, 3},
                                                     {0, 200}, {333, 70}, {15, 1},  {16, 16},
                                                     {1, 129}, {47, 64},  {900, 35}};
    const Sequences s = Sequences::Of(chunks, shape.num_heads, shape.num_kv_heads, shape.head_dim);
    std::vector<QueryTile> tiles;
    int32_t row = 0;
    for (const auto& [start, count] : chunks) {
      const int columns = count * (shape.num_heads / shape.num_kv_heads);
      for (int first = 0; first < columns; first += kTileColumns) {
        tiles.push_back({.first_row = row, .num_rows = count, .first_column = first});
      }
      row += count;
    }
    const OnDevice<QueryTile> device_tiles(tiles);
    // The larger queries give scores so far apart that sums are rescaled again and again.
    for (const double query_scale : {1.0, 20.0}) {
      const AttentionPair pair(s, query_scale);
      const Floats fast = pair.Other([&](const AttentionArguments& arguments) {
        TileAttention(arguments, device_tiles.get(), std::ssize(tiles), nullptr);
      });
      EXPECT_LT(Distance(fast, pair.Plain()), 5e-3)
          << shape.num_heads << ", " << shape.head_dim << ", queries times " << query_scale;
    }
  }
}

}  // namespace
}  // namespace pace::cuda
