#include "compare/comparison.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace pace {
namespace {

constexpr char kComparisonYaml[] = R"(
base: tiny
set: [run.num_steps=3, run.evaluate_every=2, run.checkpoint_every=0, batch.num_groups=2,
      batch.group_size=3, supply.threshold=2, task.max_numbers=3, generation.max_tokens=16,
      cluster.slots=12, engine.kv_mib=8, task.held_out_problems=6, evaluation.num_responses=1]
seeds: 2
baseline: async
arms: [async, effective]
)";

Experiment Small() {
  Result<Experiment> experiment = ParseExperiment(kComparisonYaml, "small.yaml");
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

TEST(ComparisonTest, KeepsTheCellsOfOtherSeeds) {
  Experiment experiment = Small();
  const std::string folder = Scratch("other_seeds");
  ASSERT_TRUE(RunComparison(experiment, {.directory = folder, .num_jobs = 1}).ok());
  experiment.first_seed = 101;
  experiment.num_seeds = 1;
  const auto cells = RunComparison(experiment, {.directory = folder, .num_jobs = 1});
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  EXPECT_EQ(cells->size(), 2u);
  const auto kept = ReadCells(folder + "/" + kCellsFile);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_EQ(kept->size(), 6u);
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
  ASSERT_TRUE(RunComparison(experiment,
                            {.directory = folder,
                             .num_jobs = 1,
                             .begin = [&](const ComparisonWork& work) { to_run = work.to_run; }})
                  .ok());
  EXPECT_EQ(to_run, 2u);
  EXPECT_EQ(BytesOf(folder), BytesOf(whole));
}

TEST(ComparisonTest, RunsACellAgainWhenItsSettingsChanged) {
  const Experiment experiment = Small();
  const std::string folder = Scratch("changed");
  ASSERT_TRUE(RunComparison(experiment, {.directory = folder, .num_jobs = 1}).ok());
  size_t to_run = 99;
  const auto begin = [&](const ComparisonWork& work) { to_run = work.to_run; };
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

// What a comparison found before its first cell, and the bytes that it left.
struct Ran {
  ComparisonWork work;
  std::string bytes;
};
Ran RunWith(const Experiment& experiment, const std::string& folder, ComparisonOptions options) {
  Ran out;
  options.directory = Scratch(folder);
  options.num_jobs = 1;
  options.begin = [&out](const ComparisonWork& work) { out.work = work; };
  const Result<std::vector<Cell>> cells = RunComparison(experiment, options);
  EXPECT_TRUE(cells.ok()) << cells.status().message();
  out.bytes = BytesOf(options.directory);
  return out;
}

TEST(ComparisonTest, TakesACellOfTheSameSettingsFromAnotherComparison) {
  Experiment other = Small();
  other.keep_groups = true;
  other.keep_problems = true;
  const Result<std::vector<Cell>> finished =
      RunComparison(other, {.directory = Scratch("reused_from"), .num_jobs = 1});
  ASSERT_TRUE(finished.ok()) << finished.status().message();
  // Another name, less kept, one seed more.
  Experiment experiment = Small();
  experiment.arms[0].name = "supply-2";
  experiment.baseline = "supply-2";
  experiment.num_seeds = 3;
  const Ran alone = RunWith(experiment, "reused_alone", {});
  EXPECT_EQ(alone.work.to_run, 6u);
  const Ran reused = RunWith(experiment, "reused", {.finished = *finished});
  EXPECT_EQ(reused.work.taken, 4u);
  EXPECT_EQ(reused.work.to_run, 2u);
  EXPECT_EQ(reused.bytes, alone.bytes);
  EXPECT_EQ(RunWith(other, "reused_whole", {.finished = *finished}).work.to_run, 0u);
  EXPECT_EQ(RunWith(experiment, "reused_one", {.only = {{"supply-2", 1}}, .finished = *finished})
                .work.taken,
            1u);
}

TEST(ComparisonTest, RunsACellThatDiffersFromEveryFinishedOne) {
  const Experiment experiment = Small();
  const Result<std::vector<Cell>> finished =
      RunComparison(experiment, {.directory = Scratch("finished"), .num_jobs = 1});
  ASSERT_TRUE(finished.ok()) << finished.status().message();
  Experiment other = experiment;
  other.first_seed = 3;
  EXPECT_EQ(RunWith(other, "other_seeds", {.finished = *finished}).work.taken, 0u);
  other = experiment;
  other.set.push_back("train.learning_rate=1e-3");
  EXPECT_EQ(RunWith(other, "other_settings", {.finished = *finished}).work.taken, 0u);
  other = experiment;
  other.keep_groups = true;
  EXPECT_EQ(RunWith(other, "with_groups", {.finished = *finished}).work.taken, 0u);
  other = experiment;
  other.keep_problems = true;
  EXPECT_EQ(RunWith(other, "with_problems", {.finished = *finished}).work.taken, 0u);
  EXPECT_EQ(RunWith(experiment, "again", {.again = true, .finished = *finished}).work.taken, 0u);
}

TEST(ComparisonTest, SharesTheEvaluationBeforeTheFirstStep) {
  Experiment experiment = Small();
  experiment.keep_problems = true;
  experiment.set.push_back("evaluation.greedy=true");
  const std::string folder = Scratch("first_evaluations");
  const auto cells = RunComparison(experiment, {.directory = folder, .num_jobs = 2});
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  // As in a run that makes every evaluation itself.
  std::set<std::string> keys;
  std::string alone;
  for (const CellId& id : CellsOf(experiment)) {
    const Result<Settings> settings = SettingsOf(experiment, id, {});
    ASSERT_TRUE(settings.ok()) << settings.status().message();
    const Result<Policy> policy = LoadPolicy(settings->policy);
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    ASSERT_TRUE(SharesFirstScores(*settings));
    keys.insert(FirstScoresKey(*settings, *policy));
    const Result<Cell> cell = RunCell(id, *settings, *policy, {.keep_problems = true});
    ASSERT_TRUE(cell.ok()) << cell.status().message();
    EXPECT_EQ(cell->evaluations.front().step, 0);
    alone += CellToJson(*cell) + "\n";
  }
  EXPECT_EQ(keys.size(), 1u);
  EXPECT_EQ(BytesOf(folder), alone);
}

TEST(CellTest, TakesTheFirstEvaluationThatItIsGiven) {
  const Experiment experiment = Small();
  const CellId id = {"async", 1};
  Result<Settings> settings = SettingsOf(experiment, id, {});
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  const Result<Policy> policy = LoadPolicy(settings->policy);
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  const std::vector<BenchmarkScore> scores = {{.mean = 0.125, .mean_length = 3}};
  const Result<Cell> cell = RunCell(id, *settings, *policy, {.first_scores = &scores});
  ASSERT_TRUE(cell.ok()) << cell.status().message();
  ASSERT_EQ(cell->evaluations.size(), 2u);
  EXPECT_EQ(cell->evaluations[0], (CellEvaluation{.accuracy = 0.125, .length = 3}));
  EXPECT_EQ(cell->evaluations[1].step, 2);
  // Settings that evaluate nothing before training, and evaluations that are not of settings alone.
  EXPECT_TRUE(SharesFirstScores(*settings));
  for (const char* change : {"run.evaluate_every=0", "run.evaluate_at_start=false", "device=cuda",
                             "tools.use=python", "task.verifier=python:reward.py:judge"}) {
    Settings other = *settings;
    ASSERT_TRUE(ApplyOverride(other, change).ok()) << change;
    EXPECT_FALSE(SharesFirstScores(other)) << change;
  }
  // Whatever an evaluation reads is part of the key.
  const std::string key = FirstScoresKey(*settings, *policy);
  for (const char* change :
       {"evaluation.num_responses=2", "evaluation.temperature=0.5", "generation.max_tokens=12",
        "task.held_out_seed=2", "task.max_numbers=4", "policy.compute=bf16"}) {
    Settings other = *settings;
    ASSERT_TRUE(ApplyOverride(other, change).ok()) << change;
    EXPECT_NE(FirstScoresKey(other, *policy), key) << change;
  }
}

TEST(ComparisonTest, SeedsMayCountFromAnother) {
  Experiment experiment = Small();
  experiment.first_seed = 101;
  EXPECT_EQ(CellsOf(experiment),
            (std::vector<CellId>{
                {"async", 101}, {"async", 102}, {"effective", 101}, {"effective", 102}}));
  const std::string folder = Scratch("first_seed");
  const Result<std::vector<Cell>> cells =
      RunComparison(experiment, {.directory = folder, .num_jobs = 1, .only = {{"async", 102}}});
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  ASSERT_EQ(cells->size(), 1u);
  EXPECT_EQ(cells->front().id, (CellId{"async", 102}));
  EXPECT_EQ(
      RunComparison(experiment, {.directory = folder, .only = {{"async", 1}}}).status().message(),
      "cell async.1: the seeds of small are 101 to 102");
}

TEST(ComparisonTest, UnknownCellsAndDamagedFilesAreErrors) {
  const Experiment experiment = Small();
  const std::string folder = Scratch("damaged");
  const auto refused = [&](const CellId& id) {
    return RunComparison(experiment, {.directory = folder, .only = {id}}).status().message();
  };
  EXPECT_EQ(refused({"async", 3}), "cell async.3: the seeds of small are 1 to 2");
  EXPECT_EQ(refused({"sink", 1}), "cell sink.1: small has no such arm");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + kCellsFile) << "{\"arm\":7}\n";
  const Result<std::vector<Cell>> cells = RunComparison(experiment, {.directory = folder});
  ASSERT_FALSE(cells.ok());
  EXPECT_NE(cells.status().message().find("cells.jsonl:1"), std::string::npos)
      << cells.status().message();
}

TEST(ComparisonTest, ResultsPerProblemAreKept) {
  Experiment experiment = Small();
  experiment.set.push_back("evaluation.num_responses=3");
  experiment.set.push_back("evaluation.greedy=true");
  experiment.arms.resize(1);
  experiment.num_seeds = 1;
  const std::string folder = Scratch("problems");
  size_t to_run = 0;
  const ComparisonOptions options{
      .directory = folder, .num_jobs = 1, .begin = [&](const ComparisonWork& work) {
        to_run = work.to_run;
      }};
  const Result<std::vector<Cell>> plain = RunComparison(experiment, options);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  // Cells without them do not serve.
  experiment.keep_problems = true;
  const Result<std::vector<Cell>> cells = RunComparison(experiment, options);
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  EXPECT_EQ(to_run, 1u);
  for (const CellEvaluation& evaluation : cells->front().evaluations) {
    EXPECT_EQ(evaluation.num_responses, 3);
    ASSERT_EQ(evaluation.problems.size(), 1u);
    ASSERT_EQ(evaluation.problems[0].correct.size(), 6u);
    int64_t sum = 0;
    double solved = 0;
    for (const int64_t correct : evaluation.problems[0].correct) {
      sum += correct;
      solved += correct > 0 ? 1 : 0;
    }
    EXPECT_NEAR(evaluation.accuracy, static_cast<double>(sum) / 18, 1e-6);
    EXPECT_NEAR(*evaluation.pass, solved / 6, 1e-6);
    EXPECT_TRUE(evaluation.greedy.has_value());
  }
  EXPECT_EQ(cells->front().weights_digest, plain->front().weights_digest);
  ASSERT_TRUE(RunComparison(experiment, options).ok());
  EXPECT_EQ(to_run, 0u);
  experiment.set.push_back("evaluation.num_responses=62");
  EXPECT_NE(RunComparison(experiment, options).status().message().find("must be <= 61"),
            std::string::npos);
}

TEST(CellTest, ProblemsAreACharacterEach) {
  Cell cell;
  cell.id = {"raw", 3};
  cell.evaluations = {{.step = 2,
                       .accuracy = 0.5,
                       .num_responses = 61,
                       .pass = 0.75,
                       .problems = {{{0, 9, 10, 35, 36, 61}}, {{1}}}}};
  const std::string text = CellToJson(cell);
  EXPECT_NE(text.find(R"("problems":["09azAZ","1"])"), std::string::npos) << text;
  const Result<Cell> again = ParseCell(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->evaluations, cell.evaluations);
  // More correct than there are, another benchmark in a later evaluation, a wrong character.
  Cell more = cell;
  more.evaluations[0].num_responses = 60;
  EXPECT_FALSE(ParseCell(CellToJson(more)).ok());
  Cell other = cell;
  other.evaluations.push_back(cell.evaluations[0]);
  other.evaluations[1].problems.pop_back();
  EXPECT_FALSE(ParseCell(CellToJson(other)).ok());
  std::string wrong = text;
  wrong.replace(wrong.find("09az"), 4, "0 az");
  const Result<Cell> refused = ParseCell(wrong);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("evaluations[0].problems[0]"), std::string::npos)
      << refused.status().message();
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
