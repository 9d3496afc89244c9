#include "engines/packed_chunks.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace pace {
namespace {

// As a receiver would do it, one tensor at a time: it opens a chunk, takes tensors until it holds
// more than the buffer's size or there are no more, and sends what it has if that is anything.
std::vector<WeightChunk> NaiveChunks(const std::vector<int64_t>& sizes, int64_t buffer) {
  std::vector<WeightChunk> chunks;
  size_t next = 0;
  while (next < sizes.size()) {
    std::vector<int64_t> taken;
    const size_t first = next;
    int64_t sum = 0;
    while (next < sizes.size()) {
      taken.push_back(sizes[next++]);
      sum = 0;
      for (const int64_t size : taken) sum += size;
      if (sum > buffer) break;
    }
    chunks.push_back({.first = first, .count = taken.size(), .num_bytes = sum});
  }
  return chunks;
}

TEST(PackedChunksTest, AChunkEndsWithTheTensorThatExceedsTheBuffer) {
  EXPECT_EQ(CutChunks({}, 10), std::vector<WeightChunk>());
  const std::vector<int64_t> sizes = {4, 6, 1, 9, 2, 30, 10};
  const std::vector<WeightChunk> chunks = CutChunks(sizes, 10);
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(chunks[0], (WeightChunk{.first = 0, .count = 3, .num_bytes = 11}));  // 10 is not above
  EXPECT_EQ(chunks[1], (WeightChunk{.first = 3, .count = 2, .num_bytes = 11}));
  EXPECT_EQ(chunks[2], (WeightChunk{.first = 5, .count = 1, .num_bytes = 30}));
  EXPECT_EQ(chunks[3], (WeightChunk{.first = 6, .count = 1, .num_bytes = 10}));
}

TEST(PackedChunksTest, EveryCutIsThatOfTheNaiveReceiver) {
  for (uint64_t turn = 0; turn < 2000; ++turn) {
    const CounterRandom random(turn, 3);
    const auto count = static_cast<uint64_t>(40 * random.Uniform(0, 0));
    const auto buffer = static_cast<int64_t>(200 * random.Uniform(0, 1));
    std::vector<int64_t> sizes;
    int64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const double u = random.Uniform(1, i);
      // Empty tensors, small ones, and some that are larger than the buffer.
      sizes.push_back(u < 0.1 ? 0 : static_cast<int64_t>((u > 0.9 ? 600 : 60) * u));
      sum += sizes.back();
    }
    const std::vector<WeightChunk> chunks = CutChunks(sizes, buffer);
    ASSERT_EQ(chunks, NaiveChunks(sizes, buffer)) << turn;
    // All tensors, each once, in their order.
    size_t next = 0;
    int64_t sent = 0;
    for (size_t c = 0; c < chunks.size(); ++c) {
      ASSERT_EQ(chunks[c].first, next);
      ASSERT_TRUE(chunks[c].num_bytes > buffer || c + 1 == chunks.size());
      next += chunks[c].count;
      sent += chunks[c].num_bytes;
    }
    ASSERT_EQ(next, sizes.size());
    ASSERT_EQ(sent, sum);
  }
}

}  // namespace
}  // namespace pace
