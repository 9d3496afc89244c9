#include "task/task.h"

#include <gtest/gtest.h>

#include "task/character_tokenizer.h"
#include "task/test_data.h"

namespace pace {
namespace {

PromptRenderer Renderer(const PromptOptions& options = {}) {
  return *PromptRenderer::Create(*Tokenizer::Parse(CharacterTokenizerJson()), std::nullopt,
                                 options);
}

TEST(TaskTest, TheDefaultTaskIsGeneratedRenderedAndVerified) {
  const TaskOptions options;
  ASSERT_TRUE(options.Validate().ok());
  const auto problems = MakeTrainingProblems(options, Renderer(), 1);
  ASSERT_TRUE(problems.ok()) << problems.status().message();
  const Problem problem = problems->source->At(PromptIndex(0));
  const auto ids = Renderer({.max_tokens = 54}).Render(problem);
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  EXPECT_TRUE(Verify(problem.verifier, "#### " + problem.answer, problem.answer).correct);
}

TEST(TaskTest, ADatasetIsReadFittedAndShuffled) {
  TaskOptions options;
  options.kind = TaskKind::kDataset;
  options.verifier = "math";
  options.file = WriteScratchFile("d.jsonl", R"({"problem": "1+1=", "answer": 2})"
                                             "\n"
                                             R"({"problem": "1+1+1+1=", "answer": 4})"
                                             "\n");
  ASSERT_TRUE(options.Validate().ok());
  const auto renderer = Renderer({.max_tokens = 4, .too_long = LongPrompts::kSkip});
  const auto problems = MakeTrainingProblems(options, renderer, 1);
  ASSERT_TRUE(problems.ok()) << problems.status().message();
  EXPECT_EQ(problems->fit.num_skipped, 1);
  EXPECT_EQ(problems->source->epoch_size(), 1);
  EXPECT_EQ(problems->source->At(PromptIndex(5)).verifier, VerifierMode::kMath);
  options.file = "gone.jsonl";
  EXPECT_EQ(MakeTrainingProblems(options, renderer, 1).status().message(),
            "task.file: gone.jsonl: cannot be read: No such file or directory");
  EXPECT_FALSE(MakeSftSource(options, 1).ok());
}

TEST(TaskTest, SupervisedExamplesComeFromTheOptions) {
  TaskOptions options;
  options.worked_share = 1;
  const auto examples = MakeSftSource(options, 1);
  ASSERT_TRUE(examples.ok());
  EXPECT_GT(examples->At(0).turns[0].find(kAnswerMarker), 0U);
}

std::string Invalid(const std::function<void(TaskOptions&)>& change) {
  TaskOptions options;
  change(options);
  return options.Validate().message();
}

TEST(TaskOptionsTest, RulesThatSpanFieldsAreChecked) {
  EXPECT_EQ(Invalid([](auto& o) { o.min_numbers = 19; }),
            "task.min_numbers = 19: must be <= task.max_numbers = 18");
  EXPECT_EQ(Invalid([](auto& o) { o.min_digits = 5; }),
            "task.min_digits = 5: must be <= task.max_digits = 4");
  EXPECT_EQ(Invalid([](auto& o) { o.max_steps = 2, o.min_steps = 3; }),
            "task.min_steps = 3: must be <= task.max_steps = 2");
  for (const char* operations : {"", "+/", "++", "+--", "-+-", "+-*+"}) {
    EXPECT_EQ(Invalid([&](auto& o) { o.operations = operations; }),
              Concat("task.operations = \"", operations, "\": must be some of + - *, each once"));
  }
  for (const char* operations : {"+", "*-", "-*+"}) {
    EXPECT_EQ(Invalid([&](auto& o) { o.operations = operations; }), "");
  }
  EXPECT_EQ(Invalid([](auto& o) { o.prompt_template = "{}"; }),
            "task.prompt_template = \"{}\": must contain {problem}");
  EXPECT_EQ(Invalid([](auto& o) { o.kind = TaskKind::kDataset; }),
            "task.file = \"\": task.kind = dataset needs a file (or task.sources)");
  EXPECT_EQ(Invalid([](auto& o) { o.prompt_key = o.answer_key = "text"; }),
            "task.prompt_key = text: must differ from task.answer_key");
  for (const int64_t modulus : {10, 97, 1010, 2000}) {
    EXPECT_EQ(Invalid([modulus](auto& o) { o.column_share = 0.5, o.modulus = modulus; }),
              Concat("task.column_share = 0.5: needs 100, 1000, ... as task.modulus, not ", modulus,
                     " (0 = no columns)"));
  }
  PromptOptions prompt{.thinking = Thinking::kOn, .template_variables = {"enable_thinking=false"}};
  EXPECT_EQ(prompt.Validate().message(),
            "prompt.template_variables = enable_thinking=false: prompt.thinking sets it already");
}

TEST(TaskOptionsTest, FieldsReadBackWhatTheyWrite) {
  TaskOptions options;
  options.prompt_template = "{problem}\nThe answer format must be: \\boxed{'x'}";
  options.benchmarks = {"held_out", "a b.jsonl@math"};
  std::vector<std::string> keys;
  for (const Field& field : options.Fields()) keys.push_back(field.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"kind",
                                            "min_numbers",
                                            "max_numbers",
                                            "length_scale",
                                            "train_length_scale",
                                            "modulus",
                                            "operations",
                                            "min_digits",
                                            "max_digits",
                                            "min_steps",
                                            "max_steps",
                                            "largest_number",
                                            "worked_share",
                                            "column_share",
                                            "held_out_problems",
                                            "held_out_seed",
                                            "file",
                                            "sources",
                                            "python",
                                            "prompt_key",
                                            "answer_key",
                                            "prompt_template",
                                            "verifier",
                                            "benchmarks"}));
  for (const Field& field : options.Fields()) {
    if (field.key() != "kind") continue;
    EXPECT_TRUE(field.Set(PlainText{"arithmetic"}, "task.kind").ok());
    EXPECT_EQ(
        field.Set(PlainText{"chess"}, "task.kind").message(),
        "task.kind = chess: must be one of list_sum, arithmetic, product, word_problems, dataset");
  }
  EXPECT_EQ(options.kind, TaskKind::kArithmetic);
}

}  // namespace
}  // namespace pace
