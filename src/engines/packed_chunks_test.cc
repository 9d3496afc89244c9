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

// As the server takes them: a tensor begins where those before it end, and fits there or not.
std::vector<WeightChunk> NaiveBuckets(const std::vector<TensorSize>& tensors, int64_t buffer) {
  std::vector<std::vector<TensorSize>> buckets;
  const auto bytes_of = [](const std::vector<TensorSize>& bucket) {
    int64_t sum = 0;
    for (const TensorSize& tensor : bucket) sum += tensor.num_bytes;
    return sum;
  };
  for (const TensorSize& tensor : tensors) {
    bool fits = false;
    if (!buckets.empty()) {
      const int64_t offset = bytes_of(buckets.back());
      fits = offset % tensor.width == 0 && offset + tensor.num_bytes <= buffer;
    }
    if (!fits) buckets.emplace_back();
    buckets.back().push_back(tensor);
  }
  std::vector<WeightChunk> chunks;
  size_t first = 0;
  for (const auto& bucket : buckets) {
    chunks.push_back({.first = first, .count = bucket.size(), .num_bytes = bytes_of(bucket)});
    first += bucket.size();
  }
  return chunks;
}

TEST(PackedChunksTest, ABucketIsNotLargerThanTheBufferAndKeepsElementsAligned) {
  EXPECT_EQ(CutBuckets({}, 10), std::vector<WeightChunk>());
  const std::vector<TensorSize> tensors = {{4, 2}, {6, 2}, {2, 2}, {30, 2}, {2, 2}, {4, 4}, {4, 4}};
  const std::vector<WeightChunk> buckets = CutBuckets(tensors, 10);
  ASSERT_EQ(buckets.size(), 5U);
  EXPECT_EQ(buckets[0], (WeightChunk{.first = 0, .count = 2, .num_bytes = 10}));
  EXPECT_EQ(buckets[1], (WeightChunk{.first = 2, .count = 1, .num_bytes = 2}));
  EXPECT_EQ(buckets[2], (WeightChunk{.first = 3, .count = 1, .num_bytes = 30}));
  EXPECT_EQ(buckets[3], (WeightChunk{.first = 4, .count = 1, .num_bytes = 2}));  // 2 % 4
  EXPECT_EQ(buckets[4], (WeightChunk{.first = 5, .count = 2, .num_bytes = 8}));
}

TEST(PackedChunksTest, EveryCutIntoBucketsIsTheNaiveOneAndWhatTheServerTakes) {
  for (uint64_t turn = 0; turn < 2000; ++turn) {
    const CounterRandom random(turn, 4);
    const auto count = static_cast<uint64_t>(40 * random.Uniform(0, 0));
    const auto buffer = static_cast<int64_t>(1 + 200 * random.Uniform(0, 1));
    std::vector<TensorSize> tensors;
    for (uint64_t i = 0; i < count; ++i) {
      const double u = random.Uniform(1, i);
      const int64_t width = random.Uniform(2, i) < 0.5 ? 2 : 4;
      const int64_t elements = u < 0.1 ? 0 : static_cast<int64_t>((u > 0.9 ? 200 : 15) * u);
      tensors.push_back({elements * width, width});
    }
    const std::vector<WeightChunk> buckets = CutBuckets(tensors, buffer);
    ASSERT_EQ(buckets, NaiveBuckets(tensors, buffer)) << turn;
    size_t next = 0;
    for (const WeightChunk& bucket : buckets) {
      ASSERT_EQ(bucket.first, next);
      ASSERT_GE(bucket.count, 1U);
      int64_t offset = 0;
      for (; next < bucket.first + bucket.count; ++next) {
        ASSERT_EQ(offset % tensors[next].width, 0);
        offset += tensors[next].num_bytes;
      }
      ASSERT_EQ(offset, bucket.num_bytes);
      ASSERT_TRUE(bucket.num_bytes <= buffer || bucket.count == 1 ||
                  tensors[bucket.first].num_bytes > buffer);
    }
    ASSERT_EQ(next, tensors.size());
  }
}

}  // namespace
}  // namespace pace
