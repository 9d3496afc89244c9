#include "rollout/prefix_scorer.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(PrefixScorerTest, TheLastPromptTokensRowScoresTheFirstToken) {
  PrefixScorer scorer;
  scorer.Want(3, 3);
  const auto before = scorer.TokensIn(0, 4, 5);  // rows 0..3 of a prompt of five
  EXPECT_EQ(before.size(), 0);
  const auto whole = scorer.TokensIn(0, 20, 5);
  EXPECT_EQ(whole.begin, 0);
  EXPECT_EQ(whole.end, 3);
  const auto row = scorer.TokensIn(4, 1, 5);
  EXPECT_EQ(row.begin, 0);
  EXPECT_EQ(row.end, 1);
  const auto tail = scorer.TokensIn(6, 10, 5);
  EXPECT_EQ(tail.begin, 2);
  EXPECT_EQ(tail.end, 3);
  EXPECT_EQ(scorer.TokensIn(7, 10, 5).size(), 0);
}

TEST(PrefixScorerTest, WantsNothingUntilASync) {
  const PrefixScorer scorer;
  EXPECT_FALSE(scorer.wanted());
  EXPECT_EQ(scorer.TokensIn(0, 100, 1).size(), 0);
}

TEST(PrefixScorerTest, TheScoreIsTheMeanAndComesWithTheLastToken) {
  PrefixScorer scorer;
  scorer.Want(2, 2);
  EXPECT_EQ(scorer.Add(0, 1.0), std::nullopt);
  EXPECT_EQ(scorer.Add(1, 2.0), 1.5);
  EXPECT_FALSE(scorer.wanted());
}

TEST(PrefixScorerTest, TokenZeroBeginsAgain) {
  PrefixScorer scorer;
  scorer.Want(3, 3);
  scorer.Add(0, 100.0);
  scorer.Add(1, 100.0);
  scorer.Add(0, 1.0);
  scorer.Add(1, 2.0);
  EXPECT_EQ(scorer.Add(2, 3.0), 2.0);
}

TEST(PrefixScorerTest, TokensThatWereGivenAreLeftOut) {
  PrefixScorer scorer;
  scorer.Want(5, 3);  // tokens 1 and 2 are a tool's
  EXPECT_EQ(scorer.TokensIn(0, 20, 1).end, 5);
  EXPECT_EQ(scorer.Add(0, 1.0), std::nullopt);
  EXPECT_EQ(scorer.Add(3, 2.0), std::nullopt);
  EXPECT_EQ(scorer.Add(4, 6.0), 3.0);
}

TEST(PrefixScorerDeathTest, TokensComeInOrderFromTheFirst) {
  PrefixScorer scorer;
  scorer.Want(3, 3);
  EXPECT_DEATH(scorer.Add(1, 1.0), "was next");
  scorer.Add(0, 1.0);
  scorer.Add(1, 1.0);
  EXPECT_DEATH(scorer.Add(1, 1.0), "was next");
}

}  // namespace
}  // namespace pace
