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
