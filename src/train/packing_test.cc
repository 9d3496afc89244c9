#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "train/minibatch.h"

namespace pace {
namespace {

TEST(PackingTest, EverySequenceIsInExactlyOneBinWithinTheBudget) {
  const CounterRandom random(1, 0);
  for (uint64_t round = 0; round < 200; ++round) {
    const int64_t budget = 1 + static_cast<int64_t>(200 * random.Uniform(round, 0));
    std::vector<int64_t> lengths;
    const auto num_sequences = static_cast<uint64_t>(60 * random.Uniform(round, 1));
    for (uint64_t i = 1; i <= num_sequences; ++i) {
      lengths.push_back(1 + static_cast<int64_t>(100 * random.Uniform(round, 1 + i)));
    }
    std::vector<int> seen(lengths.size());
    const std::vector<std::vector<size_t>> bins = PackSequences(lengths, budget);
    for (const std::vector<size_t>& bin : bins) {
      int64_t tokens = 0;
      for (const size_t sequence : bin) {
        ++seen[sequence];
        tokens += lengths[sequence];
      }
      EXPECT_TRUE(tokens <= budget || bin.size() == 1) << tokens << " of " << budget;
      EXPECT_TRUE(std::is_sorted(bin.begin(), bin.end()));
    }
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    // No two bins could be one: each pair's tokens exceed the budget.
    for (size_t a = 0; a < bins.size(); ++a) {
      for (size_t b = a + 1; b < bins.size(); ++b) {
        int64_t tokens = 0;
        for (const size_t bin : {a, b}) {
          for (const size_t sequence : bins[bin]) tokens += lengths[sequence];
        }
        EXPECT_GT(tokens, budget);
      }
    }
  }
}

TEST(PackingTest, NothingGivesNoBins) {
  EXPECT_TRUE(PackSequences({}, 10).empty());
}

TEST(PackingTest, LongOnesFirstThenWhatFits) {
  const std::vector<int64_t> lengths = {3, 9, 4, 6, 12};
  EXPECT_EQ(PackSequences(lengths, 10), (std::vector<std::vector<size_t>>{{0}, {1}, {2, 3}, {4}}));
}

}  // namespace
}  // namespace pace
