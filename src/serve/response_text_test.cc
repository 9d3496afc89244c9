#include "serve/response_text.h"

#include <gtest/gtest.h>

#include "rollout/test_tokenizers.h"

namespace pace {
namespace {

// a, b, ..., z and a special token, 26.
std::vector<TokenId> Letters(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(c - 'a');
  return ids;
}

struct TextParts {
  std::string whole;
  std::vector<std::string> parts;
};

TextParts Feed(const TextRules& rules, const std::vector<TokenId>& ids,
               std::optional<FinishReason> reason) {
  const Tokenizer tokenizer = LetterTokenizer(26);
  ResponseText text(tokenizer, rules);
  TextParts fed;
  for (const TokenId id : ids) fed.parts.push_back(text.Feed(id));
  fed.parts.push_back(text.Finish(reason));
  for (const std::string& part : fed.parts) fed.whole += part;
  return fed;
}

TEST(ResponseTextTest, IsTheTextOfTheTokens) {
  EXPECT_EQ(Feed({}, Letters("hello"), FinishReason::kMaxTokens).whole, "hello");
  EXPECT_EQ(Feed({}, Letters("hello"), std::nullopt).whole, "hello");
  EXPECT_EQ(Feed({}, {}, std::nullopt).whole, "");
}

TEST(ResponseTextTest, LeavesOutTheTokenThatEndedIt) {
  EXPECT_EQ(Feed({}, Letters("helloz"), FinishReason::kStopToken).whole, "hello");
  EXPECT_EQ(Feed({.include_stop = true}, Letters("helloz"), FinishReason::kStopToken).whole,
            "helloz");
}

TEST(ResponseTextTest, EndsBeforeTheStopString) {
  const TextRules rules{.stop = {"xyz", "lo"}};
  EXPECT_EQ(Feed(rules, Letters("hello"), FinishReason::kStopString).whole, "hel");
  EXPECT_EQ(
      Feed({.stop = {"lo"}, .include_stop = true}, Letters("hello"), FinishReason::kStopString)
          .whole,
      "hello");
}

TEST(ResponseTextTest, HoldsBackWhatMayBecomeAStopString) {
  const TextParts fed = Feed({.stop = {"end"}}, Letters("abcend"), FinishReason::kStopString);
  EXPECT_EQ(fed.whole, "abc");
  std::string before;
  for (size_t i = 0; i + 1 < fed.parts.size(); ++i) before += fed.parts[i];
  EXPECT_TRUE(std::string("abc").starts_with(before)) << before;
  EXPECT_EQ(Feed({.stop = {"end"}}, Letters("abcen"), FinishReason::kMaxTokens).whole, "abcen");
}

TEST(ResponseTextTest, SpecialTokensAreLeftOutUnlessAskedFor) {
  EXPECT_EQ(Feed({}, {0, 26, 1}, std::nullopt).whole, "ab");
  EXPECT_EQ(Feed({.skip_special_tokens = false}, {0, 26, 1}, std::nullopt).whole, "a<end>b");
}

TEST(MatchedStopTest, IsTheFirstThatTheLastTokenCompletes) {
  const Tokenizer tokenizer = LetterTokenizer(26);
  const std::vector<std::string> stop = {"zz", "o", "lo"};
  EXPECT_EQ(MatchedStop(tokenizer, Letters("hello"), stop), "o");
  EXPECT_EQ(MatchedStop(tokenizer, Letters("hell"), stop), std::nullopt);
  EXPECT_EQ(MatchedStop(tokenizer, Letters("lox"), stop), std::nullopt);
}

}  // namespace
}  // namespace pace
