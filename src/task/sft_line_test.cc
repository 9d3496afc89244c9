#include "task/sft_line.h"

#include <gtest/gtest.h>

#include "task/test_data.h"

namespace pace {
namespace {

std::vector<SftExample> ExamplesOf(std::string_view line, const TaskOptions& task = {}) {
  auto examples = ParseSftLine(line, task);
  EXPECT_TRUE(examples.ok()) << examples.status().message();
  return examples.ok() ? *examples : std::vector<SftExample>{{"", {"an error"}}};
}

std::string ExampleError(std::string_view line, const TaskOptions& task = {}) {
  const auto examples = ParseSftLine(line, task);
  return examples.ok() ? "accepted" : examples.status().message();
}

TEST(SftLineTest, AConversationGivesOneExampleForEachAssistantMessage) {
  const auto examples = ExamplesOf(
      R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"},)"
      R"( {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},)"
      R"( {"role": "assistant", "content": "d"}]})");
  ASSERT_EQ(examples.size(), 2U);
  EXPECT_EQ(examples[0].prompt, Prompt(std::vector<ChatMessage>{{"system", "S"}, {"user", "a"}}));
  EXPECT_EQ(examples[0].turns, std::vector<std::string>{"b"});
  EXPECT_EQ(std::get<std::vector<ChatMessage>>(examples[1].prompt).size(), 4U);
  EXPECT_EQ(examples[1].turns, std::vector<std::string>{"d"});
}

TEST(SftLineTest, PromptAndCompletionAreTextOrMessages) {
  EXPECT_EQ(ExamplesOf(R"({"prompt": "p", "completion": "c"})"),
            (std::vector<SftExample>{{"p", {"c"}}}));
  const auto chat = ExamplesOf(R"({"prompt": [{"role": "user", "content": "p"}],)"
                               R"( "completion": [{"role": "assistant", "content": "c"}]})");
  EXPECT_EQ(chat[0].prompt, Prompt(std::vector<ChatMessage>{{"user", "p"}}));
  EXPECT_EQ(chat[0].turns, std::vector<std::string>{"c"});
}

TEST(SftLineTest, TheTemplateIsFilledEverywhere) {
  TaskOptions task;
  task.prompt_template = "{problem} and again {problem}";
  EXPECT_EQ(ExamplesOf(R"({"question": "q", "solution": "s"})", task),
            (std::vector<SftExample>{{"q and again q", {"s"}}}));
}

TEST(SftLineTest, KeysMayBeNamed) {
  TaskOptions task;
  task.prompt_key = "instruction";
  task.answer_key = "output";
  EXPECT_EQ(ExamplesOf(R"({"instruction": "i", "output": "o", "prompt": 3})", task),
            (std::vector<SftExample>{{"i", {"o"}}}));
  EXPECT_EQ(ExampleError(R"({"prompt": "i", "completion": "o"})", task),
            "needs 'instruction' and 'output' (task.prompt_key, task.answer_key)");
}

TEST(SftLineTest, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(ExampleError(R"({"text": "a"})"),
            "needs 'messages', or 'prompt' and 'completion', or 'problem' and 'solution'");
  EXPECT_EQ(ExampleError(R"({"messages": [{"role": "user", "content": "a"}]})"),
            "messages: must hold an assistant message");
  EXPECT_EQ(ExampleError(R"({"messages": [{"role": "assistant", "content": "a"}]})"),
            "messages[0]: must not be the assistant's");
  TaskOptions task;
  task.file = WriteScratchFile("sft.jsonl", "\xEF\xBB\xBF{\"prompt\": \"p\", \"completion\": 3}\n");
  EXPECT_EQ(ReadSftExamples(task).status().message().find(task.file + ":1: needs "), 0U);
}

}  // namespace
}  // namespace pace
