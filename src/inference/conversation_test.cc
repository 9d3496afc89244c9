#include "inference/conversation.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pace {
namespace {

// Characters as tokens; <e> ends a turn. "ab" is a token that text never gives:
// only the model generates it.
Tokenizer Characters() {
  std::string vocab;
  int id = 0;
  for (const char* const token : {"<e>", "ab", "a", "b", "c", "u", "m", ":", " ", "s", "(", ")"}) {
    vocab += Concat(vocab.empty() ? "" : ", ", "\"", token, "\": ", id++);
  }
  Result<Tokenizer> tokenizer = Tokenizer::Parse(
      R"({"added_tokens": [{"id": 0, "content": "<e>", "special": true, "normalized": false}],
          "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated",
                            "invert": false},
          "decoder": {"type": "Fuse"},
          "model": {"type": "WordLevel", "vocab": {)" +
      vocab + R"(}, "unk_token": "s"}})");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *tokenizer;
}

ChatTemplate Template(const std::string& source) {
  Result<ChatTemplate> chat = ChatTemplate::Parse(source);
  EXPECT_TRUE(chat.ok()) << chat.status().message();
  return *chat;
}

const char* const kPlain =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<e>{% endfor %}"
    "{% if add_generation_prompt %}m:{% endif %}";

std::string Spelled(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return tokenizer.Decode(ids);
}

TEST(ConversationTest, KeepsTheTokensThatTheModelGenerated) {
  const Tokenizer tokenizer = Characters();
  // The assistant's role begins with an a, the prompt for it with m.
  Conversation chat(tokenizer,
                    Template("{% for m in messages %}{% if m.role == 'assistant' %}m{% else %}u"
                             "{% endif %}:{{ m.content }}<e>{% endfor %}"
                             "{% if add_generation_prompt %}m:{% endif %}"),
                    "");
  const Result<Conversation::Prompt> first = chat.Say("c");
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(Spelled(tokenizer, first->tokens), "u:c<e>m:");
  chat.Reply(*first, std::vector<TokenId>{1, 4, 0}, /*ended=*/true);

  const Result<Conversation::Prompt> second = chat.Say("b");
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->retokenized);
  EXPECT_EQ(Spelled(tokenizer, second->tokens), "u:c<e>m:abc<e>u:b<e>m:");
  // Token 1 is still there, and <e> once.
  EXPECT_EQ(std::count(second->tokens.begin(), second->tokens.end(), 1), 1);

  // A reply that was cut off gets its end from the template.
  chat.Reply(*second, std::vector<TokenId>{1}, /*ended=*/false);
  const Result<Conversation::Prompt> third = chat.Say("c");
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(Spelled(tokenizer, third->tokens), "u:c<e>m:abc<e>u:b<e>m:ab<e>u:c<e>m:");
  EXPECT_EQ(std::count(third->tokens.begin(), third->tokens.end(), 1), 2);
  EXPECT_FALSE(third->retokenized);
}

TEST(ConversationTest, SaysWhenTheTemplateChangesEarlierTurns) {
  const Tokenizer tokenizer = Characters();
  Conversation chat(tokenizer, Template(kPlain), "s");
  const Result<Conversation::Prompt> first = chat.Say("c");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Spelled(tokenizer, first->tokens), "s:s<e>u:c<e>m:");
  chat.Reply(*first, std::vector<TokenId>{1, 0}, true);
  // The prompt said m:, the history says a: for the assistant.
  const Result<Conversation::Prompt> second = chat.Say("b");
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->retokenized);
  EXPECT_EQ(Spelled(tokenizer, second->tokens), "s:s<e>u:c<e>a:ab<e>u:b<e>m:");
  EXPECT_EQ(std::count(second->tokens.begin(), second->tokens.end(), 1), 0);
}

TEST(ConversationTest, AMessageWithoutReplyLeavesNoTrace) {
  const Tokenizer tokenizer = Characters();
  Conversation chat(tokenizer, Template(kPlain), "");
  ASSERT_TRUE(chat.Say("a").ok());
  const Result<Conversation::Prompt> again = chat.Say("b");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(Spelled(tokenizer, again->tokens), "u:b<e>m:");
  chat.Reply(*again, std::vector<TokenId>{4}, false);
  chat.Reset();
  EXPECT_EQ(Spelled(tokenizer, chat.Say("c")->tokens), "u:c<e>m:");
}

TEST(ConversationTest, WithoutATemplateItIsOneText) {
  const Tokenizer tokenizer = Characters();
  Conversation chat(tokenizer, std::nullopt, "");
  const Result<Conversation::Prompt> first = chat.Say("a");
  ASSERT_TRUE(first.ok());
  chat.Reply(*first, std::vector<TokenId>{1}, false);
  EXPECT_EQ(chat.Say("c")->tokens, (std::vector<TokenId>{2, 1, 4}));
}

}  // namespace
}  // namespace pace
