#include "compare/comparison.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace pace {
namespace {

constexpr char kYaml[] = R"(
base: tiny
set: [run.num_steps=3, run.evaluate_every=2, run.checkpoint_every=0, batch.num_groups=2,
      batch.group_size=3, supply.threshold=2, task.max_numbers=3, generation.max_tokens=16,
      cluster.slots=12, engine.kv_mib=8, task.held_out_problems=6, evaluation.num_responses=1]
seeds: 2
baseline: async
arms: [async, effective]
)";

Experiment Small() {
  Result<Experiment> experiment = ParseExperiment(kYaml, "small.yaml");
  EXPECT_TRUE(experiment.ok()) << experiment.status().message();
  return std::move(experiment).value();
}

std::string Scratch(const std::string& name) {
  const auto folder = std::filesystem::path(PACE_BINARY_DIR) / "compare_scratch" / name;
  std::filesystem::remove_all(folder);
  return folder.string();
}

std::string BytesOf(const std::string& folder) {
  std::ifstream file(folder + "/" + kCellsFile, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ComparisonTest, GivesTheSameBytesHoweverManyRunAtOnce) {
  const Experiment experiment = Small();
  for (const int64_t jobs : {1, 2}) {
    const Result<std::vector<Cell>> cells =
        RunComparison(experiment, {.directory = Scratch(Concat("jobs", jobs)), .num_jobs = jobs});
    ASSERT_TRUE(cells.ok()) << cells.status().message();
    EXPECT_EQ(cells->size(), 4u);
  }
  const std::string folder = (std::filesystem::path(PACE_BINARY_DIR) / "compare_scratch").string();
  EXPECT_FALSE(BytesOf(folder + "/jobs1").empty());
  EXPECT_EQ(BytesOf(folder + "/jobs1"), BytesOf(folder + "/jobs2"));
}

TEST(ComparisonTest, GoesOnWhereItWasStopped) {
  const Experiment experiment = Small();
  const std::string whole = Scratch("whole");
  ASSERT_TRUE(RunComparison(experiment, {.directory = whole, .num_jobs = 1}).ok());
  const std::string folder = Scratch("stopped");
  int asked = 0;
  ASSERT_TRUE(
      RunComparison(experiment,
                    {.directory = folder, .num_jobs = 1, .stop = [&asked] { return ++asked > 2; }})
          .ok());
  EXPECT_NE(BytesOf(folder), BytesOf(whole));
  std::ofstream(folder + "/" + kCellsFile, std::ios::app) << "{\"arm\":\"asy";  // killed in a write
  size_t to_run = 0;
  ASSERT_TRUE(RunComparison(experiment, {.directory = folder,
                                         .num_jobs = 1,
                                         .begin = [&](size_t n, size_t) { to_run = n; }})
                  .ok());
  EXPECT_EQ(to_run, 2u);
  EXPECT_EQ(BytesOf(folder), BytesOf(whole));
}

TEST(ComparisonTest, RunsACellAgainWhenItsSettingsChanged) {
  const Experiment experiment = Small();
  const std::string folder = Scratch("changed");
  ASSERT_TRUE(RunComparison(experiment, {.directory = folder, .num_jobs = 1}).ok());
  size_t to_run = 99;
  const auto begin = [&](size_t n, size_t) { to_run = n; };
  ASSERT_TRUE(RunComparison(experiment, {.directory = folder, .num_jobs = 1, .begin = begin}).ok());
  EXPECT_EQ(to_run, 0u);
  const std::string before = BytesOf(folder);
  ASSERT_TRUE(RunComparison(experiment, {.directory = folder,
                                         .num_jobs = 1,
                                         .only = {{"effective", 2}},
                                         .again = true,
                                         .begin = begin})
                  .ok());
  EXPECT_EQ(to_run, 1u);
  EXPECT_EQ(BytesOf(folder), before);
  ASSERT_TRUE(RunComparison(experiment, {.directory = folder,
                                         .num_jobs = 1,
                                         .overrides = {"train.learning_rate=1e-3"},
                                         .begin = begin})
                  .ok());
  EXPECT_EQ(to_run, 4u);
  EXPECT_NE(BytesOf(folder), before);
}

TEST(ComparisonTest, UnknownCellsAndDamagedFilesAreErrors) {
  const Experiment experiment = Small();
  const std::string folder = Scratch("damaged");
  EXPECT_FALSE(RunComparison(experiment, {.directory = folder, .only = {{"async", 3}}}).ok());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + kCellsFile) << "{\"arm\":7}\n";
  const Result<std::vector<Cell>> cells = RunComparison(experiment, {.directory = folder});
  ASSERT_FALSE(cells.ok());
  EXPECT_NE(cells.status().message().find("cells.jsonl:1"), std::string::npos)
      << cells.status().message();
}

TEST(CellTest, WhatIsWrittenReadsBack) {
  Cell cell;
  cell.id = {"raw", 3};
  cell.settings_digest = "a";
  cell.weights_digest = "b";
  cell.evaluations = {{0, 0, 0.25, 10}, {5, 12.5, 0.5, 20}};
  cell.steps["time"] = {1.5, 3, std::nan("")};
  cell.steps["pool/occupancy"] = {1, 2, 3};
  const Result<Cell> again = ParseCell(CellToJson(cell));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, cell);
  EXPECT_TRUE(std::isnan(again->steps.at("time")[2]));
  cell.steps["time"].pop_back();
  EXPECT_FALSE(ParseCell(CellToJson(cell)).ok());
}

}  // namespace
}  // namespace pace
