#include "task/prompt_renderer.h"

#include <gtest/gtest.h>

#include "core/test_data.h"
#include "task/character_tokenizer.h"
#include "task/test_data.h"

namespace pace {
namespace {

Tokenizer Characters() {
  return *Tokenizer::Parse(CharacterTokenizerJson());
}

// Encodes any ASCII text, byte by byte.
Tokenizer Bytes() {
  std::string vocab;
  for (int c = 32; c < 127; ++c) {
    const std::string quoted = c == '"' || c == '\\' ? std::string("\\") + static_cast<char>(c)
                                                     : std::string(1, static_cast<char>(c));
    vocab += Concat("\"", quoted, "\": ", c, ", ");
  }
  const auto tokenizer = Tokenizer::Parse(
      R"({"version": "1.0", "added_tokens": [{"id": 1, "content": "<s>", "special": true}],)"
      R"( "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated",)"
      R"( "invert": false}, "post_processor": {"type": "TemplateProcessing",)"
      R"( "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A",)"
      R"( "type_id": 0}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1],)"
      R"( "tokens": ["<s>"]}}}, "decoder": {"type": "Fuse"},)"
      R"( "model": {"type": "WordLevel", "vocab": {)" +
      vocab + R"("\n": 10}, "unk_token": ""}})");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *tokenizer;
}

ChatTemplate Chat() {
  const auto chat = ChatTemplate::Parse(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}"
      "{% if enable_thinking is defined %}{{ 'T' if enable_thinking else 'N' }}{% endif %}"
      "{% if depth is defined %}{{ depth + 1 }}{% endif %}{% if tools %}+{{ tools | length }}"
      "{% endif %}");
  EXPECT_TRUE(chat.ok()) << chat.status().message();
  return *chat;
}

std::string TextOf(const PromptOptions& options, const Prompt& prompt, bool with_template = true,
                   std::optional<Value> tools = std::nullopt) {
  const auto renderer = PromptRenderer::Create(
      Bytes(), with_template ? std::optional(Chat()) : std::nullopt, options, std::move(tools));
  if (!renderer.ok()) return renderer.status().message();
  const auto text = renderer->Text(prompt);
  return text.ok() ? *text : text.status().message();
}

const Prompt kConversation =
    std::vector<ChatMessage>{{"user", "a"}, {"assistant", "b"}, {"user", "c"}};

TEST(PromptRendererTest, TextIsOneUserMessageWhereThereIsATemplate) {
  EXPECT_EQ(TextOf({}, "1+1="), "[user]1+1=[assistant]");
  EXPECT_EQ(TextOf({}, "1+1=", /*with_template=*/false), "1+1=");
  EXPECT_EQ(TextOf({.chat = ChatUse::kNever}, "1+1="), "1+1=");
}

TEST(PromptRendererTest, ConversationsNeedATemplate) {
  EXPECT_EQ(TextOf({}, kConversation), "[user]a[assistant]b[user]c[assistant]");
  EXPECT_EQ(TextOf({}, kConversation, /*with_template=*/false),
            "the prompt is a conversation: the model needs a chat template, and it has none");
}

TEST(PromptRendererTest, TheSystemMessageStandsInFrontUnlessThereIsOne) {
  EXPECT_EQ(TextOf({.system = "S"}, "q"), "[system]S[user]q[assistant]");
  EXPECT_EQ(TextOf({.system = "S"}, std::vector<ChatMessage>{{"system", "own"}, {"user", "q"}}),
            "[system]own[user]q[assistant]");
}

TEST(PromptRendererTest, TemplateVariablesAreTyped) {
  EXPECT_EQ(TextOf({.thinking = Thinking::kOn}, "q"), "[user]q[assistant]T");
  EXPECT_EQ(TextOf({.thinking = Thinking::kOff}, "q"), "[user]q[assistant]N");
  EXPECT_EQ(TextOf({.template_variables = {"enable_thinking=false", "depth=2"}}, "q"),
            "[user]q[assistant]N3");
  EXPECT_EQ(TextOf({.template_variables = {"enable_thinking=no"}}, "q"), "[user]q[assistant]T");
  EXPECT_EQ(TextOf({.template_variables = {"depth"}}, "q"),
            "prompt.template_variables = depth: must be name=value");
}

TEST(PromptRendererTest, ToolsReachTheTemplate) {
  EXPECT_EQ(TextOf({}, "q", true, Value::MakeList({Value(std::string("tool"))})),
            "[user]q[assistant]+1");
}

TEST(PromptRendererTest, WhatOnlyATemplateCanDoIsAnErrorWithoutOne) {
  EXPECT_EQ(TextOf({.system = "S"}, "q", /*with_template=*/false),
            "prompt: a system message, thinking, template variables or tools need a chat template, "
            "and the model has none");
  EXPECT_EQ(TextOf({.chat = ChatUse::kNever, .thinking = Thinking::kOff}, "q"),
            "prompt: a system message, thinking, template variables or tools need a chat template, "
            "and prompt.chat is never");
}

TEST(PromptRendererTest, OnlyPlainTextGetsTheTokenizersSpecialTokens) {
  const auto plain = PromptRenderer::Create(Bytes(), std::nullopt, {});
  EXPECT_EQ(*plain->Encode("a"), (std::vector<TokenId>{1, 'a'}));
  const auto chat = PromptRenderer::Create(Bytes(), Chat(), {});
  EXPECT_EQ(chat->Encode("a")->front(), '[');
}

TEST(PromptRendererTest, PromptsThatAreTooLongAreRefused) {
  const auto renderer = PromptRenderer::Create(Characters(), std::nullopt, {.max_tokens = 6});
  EXPECT_EQ(renderer->Render({.id = "x", .prompt = "12+34="})->size(), 6U);
  EXPECT_EQ(
      renderer->Render({.id = "x", .prompt = "12+345="}).status().message(),
      "problem x: a prompt of 7 tokens: at most prompt.max_tokens = 6 (prompt.too_long = skip "
      "leaves such problems of a dataset out)");
  EXPECT_EQ(renderer->Render({.id = "x", .prompt = "1 2"}).status().message().find("problem x: "),
            0U);
  EXPECT_FALSE(renderer->Render({.id = "x", .prompt = ""}).ok());
}

TEST(FitPromptsTest, SkipsOrRefusesAndCounts) {
  const std::string text = R"({"problem": "1+1=", "answer": 2})"
                           "\n"
                           R"({"problem": "100+1=", "answer": 101})"
                           "\n"
                           R"({"problem": "2+22=", "answer": 24})"
                           "\n";
  PromptOptions options{.max_tokens = 5};
  auto data = Dataset::Parse(text, "toy.jsonl");
  auto refusing = PromptRenderer::Create(Characters(), std::nullopt, options);
  const auto refused = FitPrompts(*refusing, *data);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message().find("toy.jsonl: problem toy/1: a prompt of 6 tokens"), 0U);
  EXPECT_EQ(data->size(), 3);

  options.too_long = LongPrompts::kSkip;
  const auto skipping = PromptRenderer::Create(Characters(), std::nullopt, options);
  const auto fit = FitPrompts(*skipping, *data);
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit->num_skipped, 1);
  EXPECT_EQ(fit->longest, 5);
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->Row(1).id, "toy/2");

  options.max_tokens = 2;
  const auto strict = PromptRenderer::Create(Characters(), std::nullopt, options);
  EXPECT_EQ(FitPrompts(*strict, *data).status().message(),
            "toy: all 2 prompts are longer than prompt.max_tokens = 2");
}

TEST(EncodeSftTest, LossBeginsBehindThePromptAndEndsWithTheEnd) {
  const auto renderer = PromptRenderer::Create(Characters(), std::nullopt, {});
  const auto tokens = EncodeSft(*renderer, {.prompt = "1+2=", .turns = {"1,3#### 3"}}, kEndTokenId);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->num_prompt_tokens, 4);
  EXPECT_EQ(tokens->ids, (std::vector<TokenId>{4, 13, 5, 16, 4, 17, 6, 2, 6, kEndTokenId}));
}

// The tokenizer and template of a real model.
TEST(PromptRendererTest, RendersForQwen3) {
  const auto folder = SharedData() / "tokenizers" / "qwen3";
  if (!std::filesystem::exists(folder / "tokenizer.json")) {
    GTEST_SKIP() << WithoutData(folder, 1);
  }
  const auto tokenizer = Tokenizer::Load(folder.string());
  const auto chat = ChatTemplate::Load(folder.string());
  ASSERT_TRUE(tokenizer.ok() && chat.ok());
  const auto thinking = PromptRenderer::Create(*tokenizer, *chat, {});
  EXPECT_EQ(*thinking->Text("What is 7+5?"),
            "<|im_start|>user\nWhat is 7+5?<|im_end|>\n<|im_start|>assistant\n");
  const auto ids = thinking->Render({.id = "x", .prompt = "What is 7+5?"});
  EXPECT_EQ(tokenizer->Decode(*ids), *thinking->Text("What is 7+5?"));
  const auto silent = PromptRenderer::Create(*tokenizer, *chat, {.thinking = Thinking::kOff});
  EXPECT_EQ(*silent->Text("What is 7+5?"),
            *thinking->Text("What is 7+5?") + "<think>\n\n</think>\n\n");
}

}  // namespace
}  // namespace pace
