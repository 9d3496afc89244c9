#include "execution/turns.h"

#include <gtest/gtest.h>

#include "rollout/turn_count.h"
#include "task/character_tokenizer.h"
#include "task/code_interpreter.h"

namespace pace {
namespace {

PromptRenderer Renderer() {
  Result<PromptRenderer> renderer =
      PromptRenderer::Create(*Tokenizer::Parse(ToolTokenizerJson()),
                             *ChatTemplate::Parse(kToolChatTemplate), PromptOptions{});
  EXPECT_TRUE(renderer.ok()) << renderer.status().message();
  return *std::move(renderer);
}

class TurnRulesTest : public testing::Test {
 protected:
  TurnRules Rules(int64_t max_tokens = 1000) const {
    return {options_, renderer_, kToolEndTokenId, max_tokens};
  }
  void Say(const std::string& text) {
    const std::vector<TokenId> ids = *renderer_.tokenizer().Encode(text);
    for (const TokenId id : ids) said_.tokens.push_back({.id = id});
    said_.tokens.push_back({.id = kToolEndTokenId});
  }
  void Hear(const std::string& reply) {
    const auto tokens = Rules().ReplyOf(said_, reply);
    ASSERT_TRUE(tokens.ok() && tokens->has_value());
    for (const TokenId id : **tokens) said_.tokens.push_back({.id = id, .is_tool = true});
  }
  static std::string Call(const std::string& code) {
    return Concat("<tool_call>\n{\"name\": \"code_interpreter\", \"arguments\": {\"code\": \"",
                  code, "\"}}\n</tool_call>");
  }

  PromptRenderer renderer_ = Renderer();
  ToolsOptions options_;
  PartialResponse said_;
};

TEST_F(TurnRulesTest, ATurnWithoutACallEndsTheResponse) {
  Say("the answer is \\boxed{3}");
  EXPECT_FALSE(Rules().CallOf(said_).has_value());
}

TEST_F(TurnRulesTest, TheFirstCallOfATurnCounts) {
  Say(Call("print(1)") + Call("print(2)"));
  const std::optional<ToolCall> call = Rules().CallOf(said_);
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->name, "code_interpreter");
  EXPECT_EQ(call->arguments, "{\"code\": \"print(1)\"}");
}

TEST_F(TurnRulesTest, ACallThatDoesNotReadEndsTheResponse) {
  Say("<tool_call>\n{\"name\": \"code_interpreter\"\n</tool_call>");
  EXPECT_FALSE(Rules().CallOf(said_).has_value());
}

TEST_F(TurnRulesTest, CallsOfEarlierTurnsAndWhatToolsSayCountNothing) {
  Say(Call("print(1)"));
  Hear(Call("print(7)"));
  Say("\\boxed{1}");
  EXPECT_FALSE(Rules().CallOf(said_).has_value());
  EXPECT_EQ(renderer_.tokenizer().Decode(LastTurn(said_), true), "\\boxed{1}");
}

TEST_F(TurnRulesTest, TurnsAreCountedAndBounded) {
  options_.max_assistant_turns = 3;
  for (int64_t turn = 1; turn <= 3; ++turn) {
    Say(Call("print(1)"));
    EXPECT_EQ(CountTurns(said_).assistant, turn);
    EXPECT_EQ(CountTurns(said_).tool, turn - 1);
    EXPECT_EQ(CountTurns(said_).total(), 2 * turn);
    EXPECT_EQ(Rules().CallOf(said_).has_value(), turn < 3);
    Hear("1\n");
  }
  options_.max_assistant_turns = 8;
  options_.max_tool_turns = 3;
  Say(Call("print(1)"));
  EXPECT_FALSE(Rules().CallOf(said_).has_value());
}

TEST_F(TurnRulesTest, LongRepliesAreCutInTheMiddle) {
  Say(Call("print(1)"));
  const std::string reply = std::string(300, 'a') + std::string(300, 'b');
  const auto tokens = Rules().ReplyOf(said_, reply);
  ASSERT_TRUE(tokens.ok() && tokens->has_value());
  EXPECT_EQ(
      renderer_.tokenizer().Decode(**tokens),
      Concat("\n<|im_start|>user\n<tool_response>\n", std::string(128, 'a'), "...(truncated)...",
             std::string(128, 'b'), "\n</tool_response><|im_end|>\n<|im_start|>assistant\n"));
}

// The budget spans the interaction: the reply must leave room for a token.
TEST_F(TurnRulesTest, AReplyThatDoesNotFitEndsTheResponse) {
  Say(Call("print(1)"));
  const auto tokens = Rules().ReplyOf(said_, "12345\n");
  ASSERT_TRUE(tokens.ok() && tokens->has_value());
  const auto length = static_cast<int64_t>(said_.tokens.size() + (*tokens)->size());
  EXPECT_TRUE(Rules(length + 1).ReplyOf(said_, "12345\n")->has_value());
  EXPECT_FALSE(Rules(length).ReplyOf(said_, "12345\n")->has_value());
}

TEST_F(TurnRulesTest, ATemplateWithoutRepliesIsRefused) {
  const Result<PromptRenderer> plain = PromptRenderer::Create(
      *Tokenizer::Parse(ToolTokenizerJson()),
      *ChatTemplate::Parse("{% for m in messages %}{{ m.content }}{% endfor %}"), PromptOptions{});
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(TurnRules(options_, *plain, kToolEndTokenId, 100).Check().ok());
  EXPECT_TRUE(Rules().Check().ok());
}

}  // namespace
}  // namespace pace
