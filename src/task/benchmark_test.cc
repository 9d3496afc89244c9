#include "task/benchmark.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/test_data.h"
#include "task/test_data.h"

namespace pace {
namespace {

std::shared_ptr<const SyntheticTask> ListSumTask(int64_t modulus, int64_t max_numbers) {
  TaskOptions options;
  options.modulus = modulus;
  options.max_numbers = max_numbers;
  return *MakeSyntheticTask(options);
}

TEST(HeldOutBenchmarkTest, ProblemsAreDifferentAndFixedByTheSeed) {
  const auto task = ListSumTask(100, 18);
  const auto benchmark = HeldOutBenchmark(*task, 2000, 1);
  ASSERT_TRUE(benchmark.ok());
  EXPECT_EQ(benchmark->name, "held_out");
  std::set<std::string> prompts;
  for (const Problem& problem : benchmark->problems) {
    prompts.insert(std::get<std::string>(problem.prompt));
  }
  EXPECT_EQ(prompts.size(), 2000U);
  EXPECT_EQ(benchmark->problems, HeldOutBenchmark(*task, 2000, 1)->problems);
  EXPECT_NE(benchmark->problems, HeldOutBenchmark(*task, 2000, 2)->problems);
  const auto fewer = HeldOutBenchmark(*task, 10, 1);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(fewer->problems[i], benchmark->problems[i]);
}

TEST(HeldOutBenchmarkTest, AskingForMoreThanThereAreIsAnError) {
  const auto benchmark = HeldOutBenchmark(*ListSumTask(20, 2), 1000, 1);
  ASSERT_FALSE(benchmark.ok());
  EXPECT_EQ(benchmark.status().message().find(
                "task.held_out_problems = 1000: list_sum holds out only about "),
            0U);
}

TEST(BenchmarkTest, IsNamedAfterItsFileAndMayBringItsVerifier) {
  const std::string path =
      WriteScratchFile("toy@1.jsonl", R"({"id": 1, "problem": "p", "answer": 2})");
  const auto plain = LoadBenchmark(path, {});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->name, "toy@1");
  EXPECT_EQ(plain->problems[0].verifier, VerifierMode::kDapoInteger);
  EXPECT_EQ(LoadBenchmark(path + "@math", {})->problems[0].verifier, VerifierMode::kMath);
  EXPECT_EQ(LoadBenchmark(path + "@maths", {}).status().message().find("task.benchmarks = " + path),
            0U);
  EXPECT_EQ(LoadBenchmark("no/such.jsonl", {}).status().message(),
            "task.benchmarks: no/such.jsonl: cannot be read: No such file or directory");
}

TEST(BenchmarkTest, OptionsNameAllOfThem) {
  TaskOptions options;
  options.held_out_problems = 20;
  auto all = LoadBenchmarks(options);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ((*all)[0].problems.size(), 20U);

  const std::string path = WriteScratchFile("b.jsonl", R"({"problem": "p", "answer": 2})");
  options.benchmarks = {path, "held_out"};
  options.verifier = "equiv";
  options.prompt_template = "Q {problem}";
  all = LoadBenchmarks(options);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)[0].name, "b");
  EXPECT_EQ((*all)[0].problems[0].verifier, VerifierMode::kEquivalence);
  EXPECT_EQ((*all)[0].problems[0].prompt, Prompt("Q p"));
  EXPECT_EQ((*all)[1].problems[0].verifier, VerifierMode::kGsm8k);

  options.benchmarks = {path, path};
  EXPECT_EQ(LoadBenchmarks(options).status().message(),
            "task.benchmarks = " + path + ": a second benchmark named b (rename the file)");
  options.verifier = "judge";
  EXPECT_EQ(LoadBenchmarks(options).status().message().find("task.verifier: "), 0U);
}

TEST(BenchmarkTest, ReferenceFilesLoad) {
  const std::map<std::string, size_t> sizes = {
      {"aime2023", 30},      {"aime2024", 30},     {"aime2025", 30},
      {"beyondaime", 100},   {"brumo2025", 30},    {"gsm8k_test", 1319},
      {"gsm8k_train", 7473}, {"hmmt_feb2025", 30}, {"math500", 500}};
  const auto folder = SharedData() / "benchmarks";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << WithoutData(folder, static_cast<int64_t>(sizes.size()));
  }
  size_t num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto benchmark = LoadBenchmark(entry.path().string(), {});
    ASSERT_TRUE(benchmark.ok()) << benchmark.status().message();
    const auto known = sizes.find(benchmark->name);
    if (known != sizes.end()) {
      EXPECT_EQ(benchmark->problems.size(), known->second) << benchmark->name;
      ++num_files;
    }
    std::set<std::string> ids;
    for (const Problem& problem : benchmark->problems) {
      ids.insert(problem.id);
      EXPECT_FALSE(std::get<std::string>(problem.prompt).empty()) << problem.id;
      EXPECT_FALSE(problem.answer.empty()) << problem.id;
    }
    EXPECT_EQ(ids.size(), benchmark->problems.size());
  }
  EXPECT_EQ(num_files, sizes.size());
}

}  // namespace
}  // namespace pace
