#include "report/run_names.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "config/methods.h"

namespace pace {
namespace {

RunData RunIn(const std::string& directory, const std::string& name = "effective") {
  RunData run;
  run.directory = directory;
  run.manifest.name = name;
  run.manifest.driver = "runtime";
  return run;
}

using Names = std::vector<std::string>;

TEST(DisplayNamesTest, RunsAreCalledAsTheirFolders) {
  EXPECT_EQ(DisplayNames({RunIn("runs/t1"), RunIn("runs/live80/"), RunIn("/x/./live200")}),
            (Names{"t1", "live80", "live200"}));
}

TEST(DisplayNamesTest, FoldersOfOneNameShowMoreOfTheirPaths) {
  EXPECT_EQ(DisplayNames({RunIn("a/run"), RunIn("b/run"), RunIn("c/other")}),
            (Names{"a/run", "b/run", "other"}));
  EXPECT_EQ(DisplayNames({RunIn("a/run"), RunIn("a/run")}), (Names{"a/run", "a/run (2)"}));
}

TEST(DisplayNamesTest, AFolderNamedAfterItsMethodShowsTheMethodsTitle) {
  EXPECT_EQ(DisplayNames({RunIn("out/effective"), RunIn("out/async"), RunIn("", "stale-4")}),
            (Names{"PACE", "Async", "Stale-4"}));
  EXPECT_EQ(DisplayNames({RunIn(".", "mine"), RunIn("", "")}), (Names{"mine", "run"}));
}

TEST(MethodShownTest, IsWhatWasTypedElseWhatTheSettingsAmountTo) {
  RunData run = RunIn("runs/t1", "m2po");
  run.settings = *ApplyMethod(Settings(), "m2po");
  EXPECT_EQ(MethodShown(run), "M2PO");
  run.manifest.name = "miles-24";
  EXPECT_EQ(MethodShown(run), "miles-24");
  run.manifest.name = "accept_all";  // as older runs have it
  EXPECT_EQ(MethodShown(run), "Async");
  EXPECT_EQ(MethodShown(RunIn("x", "anything")), "PACE");
}

TEST(RunFactsTest, OneRunSaysModelTaskMachineAndDate) {
  RunData run = RunIn("runs/t1");
  run.settings.policy.model = "models/Qwen3-4B/";
  run.manifest.machine = "Neoverse-N1, 2 cores";
  run.manifest.device = "cpu";
  run.manifest.threads = 3;
  run.manifest.start = 1'794'867'480;
  EXPECT_EQ(ModelShown(run), "Qwen3-4B");
  EXPECT_EQ(TaskShown(run), "list_sum");
  EXPECT_EQ(MachineShown(run.manifest), "Neoverse-N1, 2 cores, cpu, 3 threads");
  EXPECT_EQ(DateShown(run.manifest), "2026-11-16 22:18 UTC");
  EXPECT_FALSE(IsVirtual(run));
  EXPECT_FALSE(IsReproducible(run));
  run.settings.task.kind = TaskKind::kDataset;
  run.settings.task.file = "data/gsm8k.jsonl";
  EXPECT_EQ(TaskShown(run), "gsm8k.jsonl");
  run.manifest.start = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(DateShown(run.manifest), "");
  run.manifest.driver = "sim";
  EXPECT_EQ(ModelShown(run) + TaskShown(run), "");
  EXPECT_TRUE(IsReproducible(run));
}

RunData Evaluated(const std::string& benchmark) {
  RunData run = RunIn("x");
  run.evaluations.AddRow(0);
  run.evaluations.Set("eval/" + benchmark + "/mean@4", 0.5);
  return run;
}

TEST(BenchmarksOfRunsTest, TheHeldOutSetsOfDifferentTasksAreDifferentBenchmarks) {
  std::vector<RunData> runs = {Evaluated("held_out"), Evaluated("held_out")};
  EXPECT_EQ(BenchmarksOfRuns(runs)[0][0].name, "held_out");
  runs[1].settings.task.kind = TaskKind::kProduct;
  EXPECT_EQ(BenchmarksOfRuns(runs)[0][0].name, "held_out of list_sum");
  EXPECT_EQ(BenchmarksOfRuns(runs)[1][0].name, "held_out of product");
  runs[1].settings.task.kind = TaskKind::kListSum;
  runs[1].settings.task.max_numbers = 6;
  EXPECT_EQ(BenchmarksOfRuns(runs)[1][0].name, "held_out of list_sum, max_numbers 6");
  runs = {Evaluated("aime24"), Evaluated("aime24")};
  runs[1].settings.task.kind = TaskKind::kProduct;
  EXPECT_EQ(BenchmarksOfRuns(runs)[0][0].name, "aime24");
}

}  // namespace
}  // namespace pace
