#include <gtest/gtest.h>

#include "core/concat.h"
#include "core/test_data.h"
#include "task/character_tokenizer.h"
#include "task/code_interpreter.h"
#include "task/prompt_renderer.h"
#include "task/synthetic_source.h"
#include "task/synthetic_task.h"
#include "task/test_data.h"
#include "text/hermes.h"

namespace pace {
namespace {

TaskOptions ProductOptions() {
  TaskOptions options;
  options.kind = TaskKind::kProduct;
  options.max_numbers = 5;
  options.modulus = 9973;
  return options;
}

std::shared_ptr<const SyntheticTask> MakeProduct() {
  const auto task = MakeSyntheticTask(ProductOptions());
  EXPECT_TRUE(task.ok()) << task.status().message();
  return *task;
}

TEST(ProductTest, TheAnswerIsTheProductOfWhatTheProblemNames) {
  const auto task = MakeProduct();
  for (uint64_t index = 0; index < 200; ++index) {
    const Exercise exercise = task->At(Purpose::kTraining, 3, index);
    int64_t product = 1;
    size_t at = 0;
    while (at < exercise.prompt.find(' ')) {
      size_t used = 0;
      product = product * std::stoll(exercise.prompt.substr(at), &used) % 9973;
      at += used + 1;
    }
    EXPECT_EQ(exercise.answer, Concat(product)) << exercise.prompt;
    EXPECT_TRUE(exercise.prompt.ends_with(" mod 9973"));
    EXPECT_TRUE(
        Verify(task->verifier(), Concat("\\boxed{", product, "}"), exercise.answer, 4).correct);
  }
}

TEST(ProductTest, DemonstrationsShowEveryWay) {
  const auto task = MakeProduct();
  const SftSource source(task, 1, 0.4);
  int64_t called = 0, mistaken = 0, bare = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    const SftExample example = source.At(i);
    const HermesMessage first = ParseHermes(example.turns.front());
    EXPECT_TRUE(example.turns.back().starts_with("\\boxed{"));
    for (size_t turn = 0; turn + 1 < example.turns.size(); ++turn) {
      const HermesMessage message = ParseHermes(example.turns[turn]);
      ASSERT_EQ(message.calls.size(), 1U) << example.turns[turn];
      EXPECT_EQ(message.calls[0].name, kCodeInterpreter);
    }
    if (first.calls.empty()) {
      ++bare;
    } else {
      ++(first.calls[0].arguments.find(" mod ") == std::string::npos ? called : mistaken);
    }
  }
  EXPECT_NEAR(static_cast<double>(called) / 2000, 0.4, 0.05);
  EXPECT_NEAR(static_cast<double>(mistaken) / 2000, 0.3, 0.05);
  EXPECT_NEAR(static_cast<double>(bare) / 2000, 0.3, 0.05);
}

PromptRenderer ToolRenderer() {
  Result<Tokenizer> tokenizer = Tokenizer::Parse(ToolTokenizerJson());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->num_ids(), kNumToolTokens);
  Result<ChatTemplate> chat = ChatTemplate::Parse(kToolChatTemplate);
  EXPECT_TRUE(chat.ok()) << chat.status().message();
  Result<PromptRenderer> renderer = PromptRenderer::Create(*std::move(tokenizer), *std::move(chat),
                                                           PromptOptions{}, CodeInterpreterTools());
  EXPECT_TRUE(renderer.ok()) << renderer.status().message();
  return *std::move(renderer);
}

TEST(ToolTokenizerTest, EveryTextComesBackInFewTokens) {
  const PromptRenderer renderer = ToolRenderer();
  const SftSource source(MakeProduct(), 1, 0.4);
  for (int64_t i = 0; i < 200; ++i) {
    for (const std::string& turn : source.At(i).turns) {
      const auto ids = renderer.tokenizer().Encode(turn);
      ASSERT_TRUE(ids.ok()) << ids.status().message();
      EXPECT_EQ(renderer.tokenizer().Decode(*ids), turn);
      EXPECT_LT(ids->size(), 40U);
    }
  }
  const auto foreign = renderer.tokenizer().Encode("a\t\xC3\xA9z");
  ASSERT_TRUE(foreign.ok()) << foreign.status().message();
  EXPECT_EQ(renderer.tokenizer().Decode(*foreign), "a<unk><unk>z");
}

TEST(ToolTokenizerTest, AReplyReadsOnFromTheEndToken) {
  const PromptRenderer renderer = ToolRenderer();
  const auto ids = renderer.EncodeReply("12\n", kToolEndTokenId);
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  EXPECT_EQ(renderer.tokenizer().Decode(*ids),
            "\n<|im_start|>user\n<tool_response>\n12\n\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n");
}

// The templates of released models, where the reference data is there.
TEST(CodeInterpreterTest, TheReferencePromptRendersToTheByte) {
  const std::string folder = (SharedData() / "tokenizers" / "qwen3_instruct_2507").string();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << WithoutData(folder, 1);
  // The two releases share a tokenizer.
  Result<Tokenizer> tokenizer = Tokenizer::Load((SharedData() / "tokenizers" / "qwen3").string());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  Result<ChatTemplate> chat = ChatTemplate::Load(folder);
  ASSERT_TRUE(chat.ok()) << chat.status().message();
  const Result<PromptRenderer> renderer =
      PromptRenderer::Create(*tokenizer, *std::move(chat), PromptOptions{}, CodeInterpreterTools());
  ASSERT_TRUE(renderer.ok()) << renderer.status().message();
  const Prompt prompt = std::string(
      "What is 7+5?\nThe answer format must be: \\boxed{'The final answer goes here.'}");
  const Result<std::string> text = renderer->Text(prompt);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->size(), 1267U);
  EXPECT_EQ(renderer->Encode(prompt)->size(), 271U);
  const std::string path = WriteScratchFile("prompt.txt", *text);
  // sha256sum rather than a hash of our own.
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("sha256sum < " + path).c_str(), "r"), pclose);
  char digest[65] = {};
  ASSERT_EQ(fread(digest, 1, 64, pipe.get()), 64U);
  EXPECT_STREQ(digest, "d7b40b010111f9e340e9c315eb333cd82bce01b3e8af0574fd2b7144af9e78ea");

  const auto reply = renderer->EncodeReply("5", *tokenizer->Find("<|im_end|>"));
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(tokenizer->Decode(*reply),
            "\n<|im_start|>user\n<tool_response>\n5\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n");
}

}  // namespace
}  // namespace pace
