#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

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
  EXPECT_TRUE(PackEvenly({}, 10, 3).empty());
}

int64_t TokensOf(const std::vector<size_t>& bin, const std::vector<int64_t>& lengths) {
  int64_t tokens = 0;
  for (const size_t sequence : bin) tokens += lengths[sequence];
  return tokens;
}

TEST(PackingTest, EvenBinsHoldEverySequenceOnceWithinTheBudgetLargestFirst) {
  const CounterRandom random(2, 0);
  for (uint64_t round = 0; round < 200; ++round) {
    const int64_t budget = 1 + static_cast<int64_t>(200 * random.Uniform(round, 0));
    std::vector<int64_t> lengths;
    const auto num_sequences = static_cast<uint64_t>(60 * random.Uniform(round, 1));
    for (uint64_t i = 1; i <= num_sequences; ++i) {
      lengths.push_back(1 + static_cast<int64_t>(100 * random.Uniform(round, 1 + i)));
    }
    const auto count = std::ssize(PackSequences(lengths, budget)) + static_cast<int64_t>(round % 3);
    const std::vector<std::vector<size_t>> bins = PackEvenly(lengths, budget, count);
    EXPECT_LE(std::ssize(bins), count);
    std::vector<int> seen(lengths.size());
    for (size_t i = 0; i < bins.size(); ++i) {
      for (const size_t sequence : bins[i]) ++seen[sequence];
      EXPECT_TRUE(TokensOf(bins[i], lengths) <= budget || bins[i].size() == 1);
      EXPECT_TRUE(std::is_sorted(bins[i].begin(), bins[i].end()));
      if (i > 0) {
        EXPECT_GE(TokensOf(bins[i - 1], lengths), TokensOf(bins[i], lengths));
      }
    }
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  }
}

// What ranks that compute each pass together take: the sum of the largest bins.
TEST(PackingTest, EvenBinsOfTwoRanksDifferByLittleInEveryPass) {
  const CounterRandom random(3, 0);
  constexpr int64_t kBudget = 1024;
  for (uint64_t round = 0; round < 50; ++round) {
    std::vector<int64_t> lengths;
    for (uint64_t i = 0; i < 48; ++i) {
      lengths.push_back(20 + static_cast<int64_t>(300 * random.Uniform(round, i)));
    }
    int64_t count = 0;
    std::vector<std::vector<int64_t>> of_ranks;
    for (const std::vector<size_t>& share : ShareSequences(lengths, 2)) {
      std::vector<int64_t>& own = of_ranks.emplace_back();
      for (const size_t sequence : share) own.push_back(lengths[sequence]);
      count = std::max(count, std::ssize(PackSequences(own, kBudget)));
    }
    std::vector<int64_t> slowest(static_cast<size_t>(count));
    int64_t tokens = 0;
    for (const std::vector<int64_t>& own : of_ranks) {
      const std::vector<std::vector<size_t>> bins = PackEvenly(own, kBudget, count);
      for (size_t i = 0; i < bins.size(); ++i) {
        slowest[i] = std::max(slowest[i], TokensOf(bins[i], own));
        tokens += TokensOf(bins[i], own);
      }
    }
    const int64_t sum = std::accumulate(slowest.begin(), slowest.end(), int64_t{0});
    EXPECT_LE(static_cast<double>(sum), 1.1 * static_cast<double>(tokens) / 2) << round;
  }
}

TEST(PackingTest, LongOnesFirstThenWhatFits) {
  const std::vector<int64_t> lengths = {3, 9, 4, 6, 12};
  EXPECT_EQ(PackSequences(lengths, 10), (std::vector<std::vector<size_t>>{{0}, {1}, {2, 3}, {4}}));
}

// Groups of two sequences each, in order of dispatch.
std::vector<TrainSequence> Groups(int64_t num_groups) {
  std::vector<TrainSequence> sequences;
  for (int64_t i = 0; i < 2 * num_groups; ++i) sequences.emplace_back().group = i / 2;
  return sequences;
}

TEST(SplitByGroupsTest, GroupsStayWholeAndInOrder) {
  EXPECT_EQ(SplitByGroups(Groups(4), 2),
            (std::vector<std::vector<size_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(SplitByGroups(Groups(2), 5), (std::vector<std::vector<size_t>>{{0, 1}, {2, 3}}));
}

TEST(SplitByGroupsTest, AShuffleMovesWholeGroups) {
  const std::vector<TrainSequence> sequences = Groups(12);
  std::vector<int> num_first(12);  // how often a group is in the first minibatch
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto parts = SplitByGroups(sequences, 4, seed);
    ASSERT_EQ(parts.size(), 4u);
    EXPECT_EQ(parts, SplitByGroups(sequences, 4, seed));
    std::vector<int> seen(12);
    for (const std::vector<size_t>& part : parts) {
      ASSERT_EQ(part.size(), 6u);
      for (size_t i = 0; i < part.size(); i += 2) {
        EXPECT_EQ(part[i] % 2, 0u);
        EXPECT_EQ(part[i + 1], part[i] + 1);
        ++seen[part[i] / 2];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(12, 1));
    for (size_t i = 0; i < 6; i += 2) ++num_first[parts[0][i] / 2];
  }
  // 75 each on average; a deviation of 7.5 is one standard deviation.
  for (const int count : num_first) EXPECT_NEAR(count, 75, 38);
}

TEST(WithDifferentRewardsTest, GroupsOfEqualRewardsAreLeftOut) {
  std::vector<TrainSequence> sequences = Groups(3);
  for (TrainSequence& sequence : sequences) sequence.reward = 1;
  std::vector<const TrainSequence*> all;
  for (const TrainSequence& sequence : sequences) all.push_back(&sequence);
  // A step must have something to compute.
  EXPECT_EQ(WithDifferentRewards(all), (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  sequences[2].reward = 0;
  EXPECT_EQ(WithDifferentRewards(all), (std::vector<size_t>{2, 3}));
}

}  // namespace
}  // namespace pace
