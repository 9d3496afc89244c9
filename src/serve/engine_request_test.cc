#include "serve/engine_request.h"

#include <gtest/gtest.h>

#include "rollout/test_tokenizers.h"

namespace pace {
namespace {

GenerateRequest ReadRequest(ApiKind kind, const std::string& body) {
  Result<GenerateRequest> request = ReadGenerateRequest(kind, body);
  EXPECT_TRUE(request.ok()) << body << ": " << request.status().message();
  return request.ok() ? *request : GenerateRequest();
}

// 26 letters; an end.
struct Rules {
  Rules() {
    config.vocab_size = 27;
    config.max_positions = 20;
    config.eos = {26};
    rules = {.config = &config, .tokenizer = &tokenizer, .max_model_len = 20};
  }
  ModelConfig config;
  Tokenizer tokenizer = LetterTokenizer(26);
  PromptRules rules;
};

TEST(EngineRequestTest, CutsTokensToTheRoomAndRefusesMoreOfTheOthers) {
  const Rules r;
  const GenerateRequest tokens = ReadRequest(
      ApiKind::kTokens,
      R"({"token_ids": [1], "sampling_params": {"max_tokens": 100, "stop_token_ids": [3]}})");
  const Result<GroupRequest> group = EngineRequest(tokens, {1, 2, 3}, r.rules, 9);
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_EQ(group->stop.max_tokens, 17);
  EXPECT_EQ(group->stop.stop_tokens, (std::vector<TokenId>{3, 26}));
  EXPECT_EQ(group->seed, 9U);
  const GenerateRequest text =
      ReadRequest(ApiKind::kCompletion, R"({"prompt": "abc", "max_tokens": 100, "seed": 4})");
  EXPECT_EQ(EngineRequest(text, {1, 2, 3}, r.rules, 9).status().message(),
            "max_tokens = 100: after a prompt of 3 tokens at most 17 fit (prompt and response "
            "have at most 20)");
  EXPECT_EQ(EngineRequest(tokens, std::vector<TokenId>(20, 1), r.rules, 9).status().message(),
            "token_ids: 20 tokens leave no room for a response, prompt and response have at most "
            "20");
  EXPECT_FALSE(EngineRequest(tokens, {}, r.rules, 9).ok());
  EXPECT_FALSE(EngineRequest(tokens, {27}, r.rules, 9).ok()) << "not in the vocabulary";
}

TEST(PromptTokensTest, RendersMessagesWithTheModelsTemplate) {
  Rules r;
  const GenerateRequest chat =
      ReadRequest(ApiKind::kChat, R"({"messages": [{"role": "user", "content": "abc"}]})");
  EXPECT_EQ(PromptTokens(chat, r.rules).status().message(),
            "messages: the model has no chat template (use /v1/completions)");
  const Result<ChatTemplate> chat_template =
      ChatTemplate::Parse("{% for m in messages %}{{ m.content }}z{% endfor %}");
  ASSERT_TRUE(chat_template.ok());
  r.rules.chat_template = &*chat_template;
  EXPECT_EQ(*PromptTokens(chat, r.rules), (std::vector<TokenId>{0, 1, 2, 25}));
  EXPECT_EQ(*PromptTokens(ReadRequest(ApiKind::kCompletion, R"({"prompt": "ba"})"), r.rules),
            (std::vector<TokenId>{1, 0}));
}

}  // namespace
}  // namespace pace
