#include "rollout/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "rollout/test_tokenizers.h"

namespace pace {
namespace {

// The number of tokens that a response takes from `ids`, and why it ends.
struct End {
  size_t num_tokens = 0;
  std::optional<FinishReason> reason;
  friend bool operator==(const End&, const End&) = default;
};

End Feed(StopMatcher matcher, const std::vector<TokenId>& ids, size_t num_skipped = 0) {
  for (size_t i = 0; i < num_skipped; ++i) matcher.Skip(ids[i]);
  for (size_t i = num_skipped; i < ids.size(); ++i) {
    if (const auto reason = matcher.Feed(ids[i])) return {i + 1, reason};
  }
  return {ids.size(), std::nullopt};
}

TEST(StopMatcherTest, EndsAtAStopTokenAStopStringOrTheLimit) {
  const Tokenizer letters = LetterTokenizer(5);
  const StopRules rules{.max_tokens = 6, .stop_tokens = {4}, .stop_strings = {"cd"}};
  const StopMatcher matcher(&rules, &letters);
  EXPECT_EQ(Feed(matcher, {0, 4, 0}), (End{2, FinishReason::kStopToken}));
  EXPECT_EQ(Feed(matcher, {2, 0, 2, 3, 0}), (End{4, FinishReason::kStopString}));
  EXPECT_EQ(Feed(matcher, {0, 0, 0, 0, 0, 0, 0}), (End{6, FinishReason::kMaxTokens}));
  EXPECT_EQ(Feed(matcher, {0, 2}), (End{2, std::nullopt}));
}

TEST(StopMatcherTest, TheStopTokenWinsOverTheStringAndTheStringOverTheLimit) {
  const Tokenizer letters = LetterTokenizer(5);
  const StopRules both{.max_tokens = 2, .stop_tokens = {1}, .stop_strings = {"ab"}};
  EXPECT_EQ(Feed(StopMatcher(&both, &letters), {0, 1}), (End{2, FinishReason::kStopToken}));
  const StopRules string{.max_tokens = 2, .stop_tokens = {}, .stop_strings = {"ab"}};
  EXPECT_EQ(Feed(StopMatcher(&string, &letters), {0, 1}), (End{2, FinishReason::kStopString}));
}

TEST(StopMatcherTest, AGivenLengthIsTheOnlyRule) {
  const Tokenizer letters = LetterTokenizer(5);
  const StopRules rules{
      .max_tokens = 6, .stop_tokens = {4}, .stop_strings = {"cd"}, .lengths = {3, 5}};
  const std::vector<TokenId> ids = {4, 2, 3, 4, 2, 3};
  EXPECT_EQ(Feed(StopMatcher(&rules, &letters, 0), ids), (End{3, FinishReason::kMaxTokens}));
  EXPECT_EQ(Feed(StopMatcher(&rules, &letters, 1), ids), (End{5, FinishReason::kMaxTokens}));
  EXPECT_EQ(Feed(StopMatcher(&rules, &letters, 1), ids, 2), (End{5, FinishReason::kMaxTokens}));
}

TEST(StopMatcherTest, AStopStringMayLieInsideATokenOrSpanSeveral) {
  const Tokenizer tokenizer = WordTokenizer({"x</ans", "w", "er>y", "</answer>", "\xC3\xA9"});
  const StopRules rules{
      .max_tokens = 99, .stop_tokens = {}, .stop_strings = {"</answer>", "y\xC3\xA9"}};
  const StopMatcher matcher(&rules, &tokenizer);
  EXPECT_EQ(Feed(matcher, {0, 1, 2, 1}), (End{3, FinishReason::kStopString}));
  EXPECT_EQ(Feed(matcher, {1, 3, 1}), (End{2, FinishReason::kStopString}));
  EXPECT_EQ(Feed(matcher, {0, 2, 4}), (End{3, FinishReason::kStopString}));
  EXPECT_EQ(Feed(matcher, {0, 0, 2, 1}), (End{4, std::nullopt}));
}

TEST(StopMatcherTest, ASpecialTokensTextCounts) {
  const Tokenizer tokenizer = WordTokenizer({"a", "b"}, "<end>");
  const StopRules rules{.max_tokens = 99, .stop_tokens = {}, .stop_strings = {"b<end>"}};
  EXPECT_EQ(Feed(StopMatcher(&rules, &tokenizer), {2, 1, 2, 0}),
            (End{3, FinishReason::kStopString}));
}

TEST(StopMatcherTest, WhatWasThereBeforeEndsNothingButMayBeginAStopString) {
  const Tokenizer letters = LetterTokenizer(5);
  const StopRules rules{.max_tokens = 99, .stop_tokens = {}, .stop_strings = {"ab", "bcde"}};
  const StopMatcher matcher(&rules, &letters);
  EXPECT_EQ(Feed(matcher, {0, 1, 2, 3, 4}, 2), (End{5, FinishReason::kStopString}));
  EXPECT_EQ(Feed(matcher, {2, 0, 1}, 2), (End{3, FinishReason::kStopString}));
}

// Against looking through the whole decoded text after every token.
TEST(StopMatcherTest, AgreesWithASearchOfTheWholeText) {
  const Tokenizer tokenizer = WordTokenizer({"a", "b", "ab", "ba", "aab", "\xC3\xA9"});
  std::mt19937 bits(7);
  const auto below = [&bits](size_t n) { return static_cast<TokenId>(bits() % n); };
  for (int round = 0; round < 3000; ++round) {
    StopRules rules{.max_tokens = 30, .stop_tokens = {}, .stop_strings = {}};
    for (int i = 1 + below(3); i > 0; --i) {
      std::vector<TokenId> ids(static_cast<size_t>(1 + below(4)));
      for (TokenId& id : ids) id = below(6);
      rules.stop_strings.push_back(tokenizer.Decode(ids));
    }
    std::vector<TokenId> ids(30);
    for (TokenId& id : ids) id = below(7);
    const auto num_skipped = static_cast<size_t>(below(10));

    End expected{30, FinishReason::kMaxTokens};
    for (size_t n = num_skipped + 1; n <= ids.size() && expected.num_tokens == 30; ++n) {
      const std::string old_text = tokenizer.Decode(std::span(ids).first(n - 1));
      const std::string text = tokenizer.Decode(std::span(ids).first(n));
      for (const std::string& stop : rules.stop_strings) {
        const size_t last = text.rfind(stop);
        if (last != std::string::npos && last + stop.size() > old_text.size()) {
          expected = {n, FinishReason::kStopString};
        }
      }
    }
    EXPECT_EQ(Feed(StopMatcher(&rules, &tokenizer), ids, num_skipped), expected);
  }
}

}  // namespace
}  // namespace pace
