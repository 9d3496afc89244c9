#include "model/cuda/train/cuda_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "core/random.h"

namespace pace {
namespace {

TEST(AttentionPlanTest, SizesAreRoundedUpALittle) {
  const CounterRandom random(3, 0);
  std::set<std::tuple<int64_t, int64_t, int64_t>> distinct;
  for (uint64_t batch = 0; batch < 2000; ++batch) {
    // Sequences of a pass with a budget of 16,384 tokens.
    std::vector<int64_t> lengths;
    for (uint64_t i = 0;; ++i) {
      const auto length = static_cast<int64_t>(1 + 2048 * random.Exponential(batch, i));
      const int64_t capped = std::min<int64_t>(length, 8192);
      if (std::accumulate(lengths.begin(), lengths.end(), capped) > 16384) break;
      lengths.push_back(capped);
    }
    const auto count = static_cast<int64_t>(lengths.size());
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    const int64_t num_rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    const AttentionPlanSize size = PlanSizeOf(lengths);
    EXPECT_GE(size.num_sequences, count);
    EXPECT_LT(size.num_sequences, 2 * count);
    EXPECT_GE(size.longest, longest);
    EXPECT_LE(size.longest, std::max<int64_t>(256, longest + longest / 4));
    EXPECT_GE(size.num_rows, num_rows);
    EXPECT_LE(size.num_rows, std::max<int64_t>(1024, num_rows + num_rows / 4));
    distinct.emplace(size.num_sequences, size.longest, size.num_rows);
  }
  EXPECT_LT(distinct.size(), 100U);
}

TEST(AttentionPlanTest, OneTokenHasAPlan) {
  const AttentionPlanSize expected = {.num_sequences = 1, .longest = 256, .num_rows = 1024};
  EXPECT_EQ(PlanSizeOf({1}), expected);
}

}  // namespace
}  // namespace pace
