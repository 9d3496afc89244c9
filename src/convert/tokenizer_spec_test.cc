
#include "convert/tokenizer_spec.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "core/random.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

TEST(ScoreMergesTest, EveryWayToMakeATokenIsAMergeInTheOrderOfScores) {
  const std::vector<std::string> tokens = {"a", "b", "c", "bc", "ab", "abc", "x"};
  const std::vector<float> scores = {0, 0, 0, -2, -1, -3, -9};
  EXPECT_EQ(MergesFromScores(tokens, scores),
            (Merges{{"a", "b"}, {"b", "c"}, {"ab", "c"}, {"a", "bc"}}));
}

TEST(ScoreMergesTest, CutsFallBetweenCharacters) {
  const std::vector<std::string> tokens = {"é", "é!", "!", ""};
  const std::vector<float> scores = {0, -1, 0, 0};
  EXPECT_EQ(MergesFromScores(tokens, scores), (Merges{{"é", "!"}}));
}

TEST(ScoreMergesTest, OfTwoWaysThatCanMeetTheLeftOneComesFirst) {
  // In ab aba ba both pairs make ababa; the left one is (ab, aba).
  const std::vector<std::string> tokens = {"ab", "aba", "ba", "ababa"};
  const std::vector<float> scores = {0, 0, 0, -1};
  EXPECT_EQ(MergesFromScores(tokens, scores), (Merges{{"ab", "aba"}, {"aba", "ba"}}));
}

// The definition: join the pair whose token has the highest score, the leftmost
// among equals, until none is left.
std::vector<TokenId> JoinByScore(const std::map<std::string, TokenId>& ids,
                                 const std::vector<float>& scores, const std::string& text) {
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  for (;;) {
    std::optional<size_t> best;
    float best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto joined = ids.find(symbols[i] + symbols[i + 1]);
      if (joined == ids.end()) continue;
      const float score = scores[static_cast<size_t>(joined->second)];
      if (best.has_value() && score <= best_score) continue;
      best = i;
      best_score = score;
    }
    if (!best.has_value()) break;
    symbols[*best] += symbols[*best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
  std::vector<TokenId> out;
  for (const std::string& symbol : symbols) out.push_back(ids.at(symbol));
  return out;
}

// Learned as BPE learns: each new token is the pair of two older ones.
TEST(ScoreMergesTest, MergesGiveWhatJoiningByScoreGives) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const CounterRandom random(seed, 1);
    TokenizerSpec spec;
    spec.tokens = {"a", "b", "c"};
    std::vector<float> scores = {-100, -101, -102};
    std::map<std::string, TokenId> ids = {{"a", 0}, {"b", 1}, {"c", 2}};
    for (uint64_t round = 0; spec.tokens.size() < 25; ++round) {
      const std::string token = spec.tokens[random.Bits(round, 0) % spec.tokens.size()] +
                                spec.tokens[random.Bits(round, 1) % spec.tokens.size()];
      if (token.size() > 8 || !ids.emplace(token, spec.tokens.size()).second) continue;
      scores.push_back(-static_cast<float>(spec.tokens.size()));
      spec.tokens.push_back(token);
    }
    spec.merges = MergesFromScores(spec.tokens, scores);
    spec.decoder = R"({"type": "Fuse"})";
    const Result<std::vector<FolderText>> files = TokenizerFiles(spec);
    ASSERT_TRUE(files.ok()) << files.status().message();
    const Result<Tokenizer> tokenizer = Tokenizer::Parse(files->front().text);
    ASSERT_TRUE(tokenizer.ok());
    for (uint64_t round = 0; round < 100; ++round) {
      std::string text;
      // Long rows of one letter come often: there the ways to join meet.
      for (uint64_t i = 0; text.size() < 30; ++i) {
        const uint64_t bits = random.Bits(1000 + round, i);
        text.append(bits / 8 % 5 + 1, static_cast<char>('a' + bits % 3));
      }
      EXPECT_EQ(*tokenizer->Encode(text), JoinByScore(ids, scores, text))
          << "seed " << seed << " " << text;
    }
  }
}

}  // namespace
}  // namespace pace
