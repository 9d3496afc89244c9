#include "inference/sequence_scorer.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "rollout/fake_decoder.h"

namespace pace {
namespace {

std::vector<TokenId> RandomIds(const CounterRandom& random, uint64_t which, uint64_t size) {
  std::vector<TokenId> ids;
  for (uint64_t i = 0; i < size; ++i) {
    ids.push_back(static_cast<TokenId>(random.Bits(which, i) % 13));
  }
  return ids;
}

std::vector<std::vector<float>> ScoreAll(const std::vector<std::vector<TokenId>>& sequences,
                                         int64_t num_blocks, int64_t max_pass_tokens) {
  FakeDecoder decoder({.num_blocks = num_blocks});
  decoder.Install(std::make_shared<FakeDecoder::Weights>(0));
  SequenceScorer scorer(decoder, max_pass_tokens);
  std::vector<std::vector<float>> all;
  const auto step = [&] {
    const Result<std::vector<std::vector<float>>> completed = scorer.Step();
    ASSERT_TRUE(completed.ok()) << completed.status().message();
    all.insert(all.end(), completed->begin(), completed->end());
  };
  for (size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_TRUE(scorer.Submit(sequences[i]).ok());
    if (i % 3 == 2) step();
  }
  while (scorer.busy()) step();
  EXPECT_EQ(scorer.num_waiting_tokens(), 0);
  return all;
}

// The fake network's answer depends on every token before, and the fake cache
// refuses blocks that the sequence did not fill itself.
TEST(SequenceScorerTest, ResultsDoNotDependOnThePassesAndComeInOrder) {
  const CounterRandom random(5, 1);
  std::vector<std::vector<TokenId>> sequences = {{}, {3}, {3, 4}};
  for (uint64_t i = 0; i < 40; ++i) {
    sequences.push_back(RandomIds(random, i, random.Bits(100, i) % 70));
  }
  const std::vector<std::vector<float>> together = ScoreAll(sequences, 64, 512);
  ASSERT_EQ(together.size(), sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_EQ(together[i].size(), sequences[i].empty() ? 0 : sequences[i].size() - 1);
    EXPECT_EQ(ScoreAll({sequences[i]}, 5, 512).front(), together[i]);
  }
  EXPECT_EQ(ScoreAll(sequences, 5, 512), together);
  EXPECT_EQ(ScoreAll(sequences, 64, 1), together);
  EXPECT_EQ(ScoreAll(sequences, 7, 19), together);
}

TEST(SequenceScorerTest, RefusesWhatDoesNotFit) {
  FakeDecoder decoder({.max_positions = 100, .num_blocks = 2});
  SequenceScorer scorer(decoder, 512);
  EXPECT_TRUE(scorer.Submit(std::vector<TokenId>(33, 1)).ok());
  EXPECT_EQ(scorer.Submit(std::vector<TokenId>(34, 1)).message(),
            "34 ids: the KV cache holds 32 tokens (give more --kv-memory)");
  EXPECT_EQ(scorer.Submit(std::vector<TokenId>(102, 1)).message(),
            "102 ids: the model has 100 positions");
  EXPECT_EQ(scorer.Submit({1, 13}).message(),
            "ids[1] = 13: must be an id of the vocabulary, 0 to 12");
}

}  // namespace
}  // namespace pace
