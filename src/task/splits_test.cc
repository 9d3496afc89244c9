#include "task/splits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace pace {
namespace {

std::vector<int64_t> Epoch(uint64_t seed, int64_t epoch, int64_t size) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i) order.push_back(ShuffledPosition(seed, epoch, i, size));
  return order;
}

TEST(ShuffleTest, EveryEpochIsABijection) {
  for (const int64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4096, 17917}) {
    for (const int64_t epoch : {0, 1, 7}) {
      std::vector<int> seen(static_cast<size_t>(size), 0);
      for (const int64_t position : Epoch(3, epoch, size)) {
        ASSERT_GE(position, 0);
        ASSERT_LT(position, size);
        ++seen[static_cast<size_t>(position)];
      }
      for (const int count : seen) ASSERT_EQ(count, 1) << size;
    }
  }
}

TEST(ShuffleTest, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  std::set<std::vector<int64_t>> orders;
  for (const uint64_t seed : {1U, 2U, 3U}) {
    for (const int64_t epoch : {0, 1, 2}) orders.insert(Epoch(seed, epoch, 100));
  }
  EXPECT_EQ(orders.size(), 9U);
  EXPECT_EQ(Epoch(1, 0, 100), Epoch(1, 0, 100));
}

// Over many epochs each entry stands at each position equally often; 6 sigma.
TEST(ShuffleTest, EveryEntryComesAnywhere) {
  constexpr int64_t kEpochs = 20000;
  for (const int64_t size : {2, 3, 5, 7, 16}) {
    const double expected = static_cast<double>(kEpochs) / static_cast<double>(size);
    std::vector<std::vector<int64_t>> counts(static_cast<size_t>(size),
                                             std::vector<int64_t>(static_cast<size_t>(size)));
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const std::vector<int64_t> order = Epoch(11, epoch, size);
      for (size_t i = 0; i < order.size(); ++i) ++counts[i][static_cast<size_t>(order[i])];
    }
    for (const auto& row : counts) {
      for (const int64_t count : row) {
        EXPECT_NEAR(static_cast<double>(count), expected, 6 * std::sqrt(expected)) << size;
      }
    }
  }
}

TEST(ShuffleTest, LargeSizesStayInside) {
  constexpr int64_t kSize = (int64_t{1} << 40) + 1;
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t position = ShuffledPosition(5, 2, i, kSize);
    ASSERT_LT(position, kSize);
    seen.insert(position);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

// The order is part of what a seed means: a run resumed by a later build must
// go on with the same problems.
TEST(ShuffleTest, TheOrderOfASeedIsPinned) {
  EXPECT_EQ(Epoch(1, 0, 8), (std::vector<int64_t>{3, 5, 2, 1, 4, 6, 7, 0}));
}

}  // namespace
}  // namespace pace
