#include "task/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "task/dataset_line.h"
#include "task/line_file.h"
#include "task/test_data.h"

namespace pace {
namespace {

std::string ErrorOf(std::string_view line) {
  const Result<DatasetLine> parsed = ParseDatasetLine(line);
  return parsed.ok() ? "accepted" : parsed.status().message();
}

Dataset Parse(std::string_view text, DatasetForm form = {}) {
  Result<Dataset> data = Dataset::Parse(text, "folder/toy.jsonl", std::move(form));
  EXPECT_TRUE(data.ok()) << data.status().message();
  return *std::move(data);
}

constexpr std::string_view kVerl =
    R"({"data_source": "math_dapo", "prompt": [{"role": "system", "content": "S", "name": null},)"
    R"( {"content": "What is 7+5?", "role": "user"}], "ability": "MATH", "answer": [1],)"
    R"( "reward_model": {"style": "rule", "ground_truth": "12"},)"
    R"( "extra_info": {"split": "train", "index": 7}})";

constexpr const char* kNoPrompt =
    "needs a prompt: 'problem', 'question' or 'prompt' (text), or 'prompt' or 'messages' (a list "
    "of messages); task.prompt_key names another key";

TEST(DatasetLineTest, ReadsProblemAndAnswer) {
  const auto line = ParseDatasetLine(
      R"({"id": "a/0", "problem": "Find $x$.", "answer": "204", "level": {"deep": [1]}})");
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->id, "a/0");
  EXPECT_EQ(line->prompt, Prompt("Find $x$."));
  EXPECT_EQ(line->answer, "204");
}

TEST(DatasetLineTest, IdsAndAnswersMayBeNumbers) {
  const auto answer = [](const std::string& number) {
    const auto line = ParseDatasetLine(R"({"id": 17, "problem": "p", "answer": )" + number + "}");
    EXPECT_EQ(line.ok() ? line->id.value_or("") : "", "17");
    return line.ok() ? line->answer : line.status().message();
  };
  EXPECT_EQ(answer("72"), "72");
  EXPECT_EQ(answer("-3"), "-3");
  EXPECT_EQ(answer("72.0"), "72");
  EXPECT_EQ(answer("0.25"), "0.25");
  EXPECT_EQ(answer("9007199254740992"), "9007199254740992");
  EXPECT_EQ(ErrorOf(R"({"problem": "p", "answer": 1e17})"),
            "answer = 1e17: must be <= 9007199254740992 (write longer numbers as text)");
}

TEST(DatasetLineTest, ReadsVerlsSchema) {
  const auto line = ParseDatasetLine(kVerl);
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->id, "7");
  EXPECT_EQ(line->answer, "12");
  EXPECT_EQ(line->data_source, "math_dapo");
  EXPECT_EQ(line->ability, "MATH");
  EXPECT_EQ(line->prompt,
            Prompt(std::vector<ChatMessage>{{"system", "S"}, {"user", "What is 7+5?"}}));
}

TEST(DatasetLineTest, ReadsPromptsThatAreTextOrMessages) {
  const auto text = ParseDatasetLine(R"({"prompt": "What is 7+5?", "answer": 12})");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->prompt, Prompt("What is 7+5?"));
  EXPECT_EQ(text->answer, "12");
  const auto truth = ParseDatasetLine(R"({"prompt": "p", "reward_model": {"ground_truth": 1}})");
  ASSERT_TRUE(truth.ok()) << truth.status().message();
  EXPECT_EQ(truth->answer, "1");
  for (const char* key : {"prompt", "messages"}) {
    const auto line = ParseDatasetLine(
        Concat("{\"", key, R"(": [{"role": "user", "content": [{"type": "text", "text": "a"},)",
               R"( {"type": "text", "text": "b"}]}], "answer": "12"})"));
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_EQ(line->prompt, Prompt(std::vector<ChatMessage>{{"user", "ab"}}));
  }
}

TEST(DatasetLineTest, KeysMayBeNamed) {
  const std::string line =
      R"({"problem": "no", "input": {"text": "p"}, "input2": 3, "extra": {"gold": 7}, "id": "i"})";
  const auto parsed = ParseDatasetLine(line, {.prompt = "input.text", .answer = "extra.gold"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->prompt, Prompt("p"));
  EXPECT_EQ(parsed->answer, "7");
  EXPECT_EQ(parsed->id, "i");
  EXPECT_EQ(ParseDatasetLine(line, {.prompt = "input2"}).status().message(),
            "needs 'input2', text or a list of messages");
  EXPECT_EQ(ParseDatasetLine(line, {.answer = "input"}).status().message(),
            "needs 'input', text or a number");
}

TEST(DatasetLineTest, ReadsGsm8kAsPublished) {
  const auto line = ParseDatasetLine(
      R"({"question": "How many?", "answer": "He has 5 #### bags.\nSo <<2*5=10>>10.\n#### 2,125 "})");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->answer, "2125");
  EXPECT_EQ(line->prompt, Prompt("How many?"));
  EXPECT_FALSE(line->id.has_value());
}

TEST(DatasetLineTest, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(ErrorOf("[1]"), "must be an object in braces");
  EXPECT_EQ(ErrorOf(R"({"problem": "p"})"), "needs 'answer', text or a number");
  EXPECT_EQ(ErrorOf(R"({"problem": "p", "answer": null})"), "needs 'answer', text or a number");
  EXPECT_EQ(ErrorOf(R"({"problem": "p", "answer": ""})"), "the answer is empty: must be given");
  EXPECT_EQ(ErrorOf(R"({"problem": "", "answer": "1"})"), "problem = \"\": must not be empty");
  EXPECT_EQ(ErrorOf(R"({"text": "p", "answer": "1"})"), kNoPrompt);
  EXPECT_EQ(ErrorOf(R"({"prompt": [{"role": "user"}], "reward_model": {"ground_truth": "1"}})"),
            "prompt[0]: needs 'role' and 'content', both text");
  EXPECT_EQ(ErrorOf(R"({"prompt": [], "reward_model": {"ground_truth": "1"}})"),
            "prompt: must hold at least one message");
  EXPECT_EQ(ErrorOf(R"({"prompt": [{"role": "u", "content": "c"}], "reward_model": {}})"),
            "reward_model: needs 'ground_truth', text or a number");
  EXPECT_EQ(ErrorOf(R"({"problem": "p", "answer": "1"} x)"),
            "column 33: not JSON: text after the end of the value");
}

TEST(DatasetTest, ABadLineIsNamedByFileAndLine) {
  const std::string path = WriteScratchFile(
      "bad.jsonl", "{\"problem\": \"p\", \"answer\": 1}\n\n{\"problem\": 3, \"answer\": 1}\n");
  const auto data = Dataset::Load(path);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.status().message(), Concat(path, ":3: ", kNoPrompt));
  EXPECT_EQ(Dataset::Parse("\n \n", "empty.jsonl").status().message(),
            "empty.jsonl: must hold at least one problem");
  EXPECT_EQ(Dataset::Load("nowhere.jsonl").status().message(),
            "nowhere.jsonl: cannot be read: No such file or directory");
  EXPECT_EQ(Dataset::Load("nowhere.parquet").status().message(),
            "nowhere.parquet: cannot be read: No such file or directory");
}

// An interpreter that says this, instead of a Python that has pyarrow or not.
std::string FakePython(const std::string& name, const std::string& script) {
  const std::string path = WriteScratchFile(name, "#!/bin/sh\n" + script);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(DatasetTest, RowsOfParquetComeFromTheInterpreter) {
  const std::string file = WriteScratchFile("toy.parquet", "PAR1");
  const std::string rows = WriteScratchFile("rows.jsonl", Concat(kVerl, "\n", kVerl, "\n"));
  const auto data =
      Dataset::Load(file, {.python = FakePython("fine.sh", "cat " + rows + "; echo 2 rows >&2\n")});
  ASSERT_TRUE(data.ok()) << data.status().message();
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->Row(1).answer, "12");
  EXPECT_EQ(data->Row(1).extra_info, R"({"split": "train", "index": 7})");
  const std::string missing =
      FakePython("missing.sh",
                 "echo 'parquet_to_jsonl.py: needs pyarrow (pip install pyarrow)' >&2; exit 2\n");
  EXPECT_TRUE(Dataset::Load(file, {.python = missing})
                  .status()
                  .message()
                  .starts_with(file + ": needs pyarrow (pip install pyarrow) (task.python = "));
  EXPECT_EQ(Dataset::Load(file, {.python = "/nowhere/python"}).status().message(),
            "task.python = /nowhere/python: No such file or directory");
  const std::string bad = FakePython("bad.sh", "echo '{}'; sleep 1000\n");
  EXPECT_NE(Dataset::Load(file, {.python = bad}).status().message().find(file + ":1: "),
            std::string::npos);
}

TEST(DatasetTest, TheTemplateIsFilledAndOtherBracesStay) {
  const std::string text = R"({"problem": "Find {problem}.", "answer": 1})"
                           "\n";
  const Dataset data = Parse(text, {.prompt_template = "{problem}\nUse \\boxed{'x'}; {problem}"});
  EXPECT_EQ(data.Row(0).prompt, Prompt("Find {problem}.\nUse \\boxed{'x'}; Find {problem}."));
}

TEST(DatasetTest, ConversationsAreUsedAsTheyAre) {
  const Dataset data =
      Parse(kVerl, {.prompt_template = "Q: {problem}", .verifier = VerifierMode::kMath});
  const Problem problem = data.Row(0);
  EXPECT_EQ(std::get<std::vector<ChatMessage>>(problem.prompt).size(), 2U);
  EXPECT_EQ(problem.verifier, VerifierMode::kMath);
  EXPECT_EQ(problem.data_source, "math_dapo");
}

TEST(DatasetTest, TheDataSourceChoosesTheVerifierAsInVerl) {
  const auto row = [](std::string_view source) {
    return Concat(R"({"prompt": [{"role": "user", "content": "p"}], "data_source": ")", source,
                  R"(", "reward_model": {"ground_truth": "1"}})");
  };
  const Dataset mixed = Parse(Concat(row("openai/gsm8k"), "\n", row("aime_2024"), "\n",
                                     row("lighteval/MATH"), "\n", row("")));
  EXPECT_EQ(mixed.Row(0).verifier, VerifierMode::kGsm8k);
  EXPECT_EQ(mixed.Row(1).verifier, VerifierMode::kDapo);
  EXPECT_EQ(mixed.Row(2).verifier, VerifierMode::kMath);
  EXPECT_EQ(mixed.Row(3).verifier, VerifierMode::kDapoInteger);
  EXPECT_EQ(Dataset::Parse(row("codecontests"), "x.jsonl").status().message(),
            "x.jsonl:1: data_source = codecontests: no verifier is known for it (set "
            "task.verifier, or write FILE@MODE for a benchmark)");
  EXPECT_EQ(Parse(row("codecontests"), {.verifier = VerifierMode::kMath}).Row(0).verifier,
            VerifierMode::kMath);
}

TEST(DatasetTest, AByteOrderMarkIsPassedOver) {
  const Dataset data = Parse("\xEF\xBB\xBF{\"problem\": \"p\", \"answer\": 1}\n");
  EXPECT_EQ(data.Row(0).answer, "1");
}

TEST(DatasetTest, RowsWithoutIdAreNumbered) {
  std::string text = "\n";
  for (int i = 0; i < 3; ++i)
    text += R"({"problem": "p", "answer": 1})"
            "\r\n";
  Dataset data = Parse(text);
  EXPECT_EQ(data.name(), "toy");
  EXPECT_EQ(data.Row(2).id, "toy/2");
  const auto keep = [](const Problem& problem) -> Result<bool> { return problem.id != "toy/1"; };
  ASSERT_TRUE(data.Keep(keep).ok());
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.Row(1).id, "toy/2");
}

// Blocks are a megabyte: lines lie across their edges, and the last one has no
// newline.
TEST(DatasetTest, LargeFilesAreCutIntoTheirLines) {
  std::string text;
  for (int i = 0; i < 30000; ++i) {
    text +=
        Concat("{\"id\": ", i, ", \"problem\": \"", std::string(static_cast<size_t>(i % 97), 'x'),
               "?\", \"answer\": ", i * 3, "}", i < 29999 ? "\n" : "");
  }
  const auto data = Dataset::Load(WriteScratchFile("large.jsonl", text));
  ASSERT_TRUE(data.ok()) << data.status().message();
  ASSERT_EQ(data->size(), 30000);
  for (int64_t i = 0; i < data->size(); i += 7) {
    const Problem problem = data->Row(i);
    ASSERT_EQ(problem.id, Concat(i));
    ASSERT_EQ(problem.answer, Concat(i * 3));
  }
}

TEST(DatasetTest, AnEndlessLineIsRefused) {
  const auto data = Dataset::Parse(std::string(kMaxDataLineBytes + 1, 'x'), "x.jsonl");
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.status().message(),
            "x.jsonl:1: longer than 16777216 bytes (one JSON object per line)");
}

TEST(DatasetSourceTest, EveryEpochHasEachProblemOnceInItsOwnOrder) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += Concat("{\"problem\": \"", i, "?\", \"answer\": ", i, "}\n");
  const DatasetSource source(Parse(text), 9);
  ASSERT_EQ(source.epoch_size(), 50);
  std::set<std::vector<std::string>> orders;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::string> order;
    for (int64_t i = 0; i < 50; ++i) order.push_back(source.At(PromptIndex(epoch * 50 + i)).id);
    EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 50U);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 4U);
  EXPECT_EQ(source.At(PromptIndex(33)), DatasetSource(Parse(text), 9).At(PromptIndex(33)));
  EXPECT_NE(source.At(PromptIndex(33)), DatasetSource(Parse(text), 10).At(PromptIndex(33)));
}

MixedSource::Part Numbers(int64_t first, int64_t count, double weight) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i) {
    text += Concat("{\"id\": ", i, ", \"problem\": \"p\", \"answer\": ", i, "}\n");
  }
  return {std::make_shared<const DatasetSource>(Parse(text), 3), weight};
}

TEST(MixedSourceTest, EachFileGivesItsShareEvenlySpreadAndItsOwnEpochs) {
  const std::vector<MixedSource::Part> parts = {Numbers(0, 7, 3), Numbers(100, 11, 1),
                                                Numbers(200, 5, 0.5)};
  const Result<MixedSource> mixed = MixedSource::Create(parts);
  ASSERT_TRUE(mixed.ok()) << mixed.status().message();
  std::vector<int64_t> counts(3);
  for (int64_t i = 0; i < 3000; ++i) {
    const Problem problem = mixed->At(PromptIndex(i));
    const auto part = static_cast<size_t>(std::stoi(problem.id) / 100);
    // The next problem of that file, as if it were alone.
    ASSERT_EQ(problem, parts[part].source->At(PromptIndex(counts[part]++)));
    for (size_t p = 0; p < 3; ++p) {
      ASSERT_NEAR(static_cast<double>(counts[p]),
                  parts[p].weight / 4.5 * static_cast<double>(i + 1), 3.0);
    }
  }
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 3000);
  EXPECT_EQ(mixed->epoch_size(), 1000);
}

TEST(MixedSourceTest, AnEpochIsOverWhenTheSlowestFileIsThrough) {
  const Result<MixedSource> mixed = MixedSource::Create({Numbers(0, 5, 99), Numbers(100, 25, 1)});
  ASSERT_TRUE(mixed.ok());
  EXPECT_EQ(mixed->epoch_size(), 3000);  // 10 of 1000
  std::set<std::string> seen;
  for (int64_t i = 0; i < 3000; ++i) seen.insert(mixed->At(PromptIndex(i)).id);
  EXPECT_EQ(seen.size(), 30U);
}

TEST(MixedSourceTest, AWeightThatGivesNothingIsRefused) {
  EXPECT_EQ(MixedSource::Create({Numbers(0, 5, 1000), Numbers(100, 5, 0.01)}).status().message(),
            "task.sources: weight 0.01 of 1000.01 gives no problem in 1000 (leave the file out)");
}

TEST(MixedSourceTest, SourcesNameFileAndWeight) {
  EXPECT_EQ(DataSourceOf("a@b/c.jsonl@2.5")->file, "a@b/c.jsonl");
  EXPECT_EQ(DataSourceOf("a@b/c.jsonl@2.5")->weight, 2.5);
  EXPECT_EQ(DataSourceOf("c.jsonl")->weight, 1);
  for (const char* wrong : {"", "a.jsonl@", "a.jsonl@x", "a.jsonl@0", "a.jsonl@-1", "@2",
                            "a.jsonl@nan", "a.jsonl@1e9"}) {
    EXPECT_FALSE(DataSourceOf(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace pace
