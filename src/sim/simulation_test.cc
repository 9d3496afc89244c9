#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "config/methods.h"

namespace pace {
namespace {

Settings Load(const std::string& preset, const std::vector<std::string>& overrides = {}) {
  auto settings = LoadSettings(preset, overrides);
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  return settings.ok() ? *settings : Settings();
}

Settings Method(const Settings& settings, const std::string& method) {
  auto applied = ApplyMethod(settings, method);
  EXPECT_TRUE(applied.ok()) << applied.status().message();
  return applied.ok() ? *applied : Settings();
}

SimResult Simulate(const Settings& settings, const SimOptions& options = {}) {
  auto result = RunSimulation(settings, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *std::move(result) : SimResult();
}

SimResult SimulateChecked(const Settings& settings) {
  SimOptions options;
  options.check_invariants = true;
  return Simulate(settings, options);
}

double MeanOver(const SimResult& result, const std::string& name, size_t begin, size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += Find(result.rows[i], name).value_or(0);
  return sum / static_cast<double>(end - begin);
}

// One slot per response, constant token time, constant training time.
Settings Theory(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"cluster.decode_costs=constant", "cluster.seconds_per_token=1",
                                  "cluster.sync_overhead_s=0",     "cluster.train_seconds=10",
                                  "workload.prompt_share=0",       "workload.max_tokens=1000000"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Load("small", all);
}

TEST(SimulationTest, LittlesLawHoldsForThePool) {
  for (const char* method : {"async", "raw", "effective"}) {
    const SimTotals totals = Simulate(Method(Load("small", {"run.num_steps=1200"}), method)).totals;
    const double arrived = totals.pool_arrival_rate * totals.pool_mean_sojourn.count();
    EXPECT_NEAR(totals.pool_mean_occupancy / arrived, 1, 0.02) << method;
    EXPECT_GT(totals.pool_mean_occupancy, 1) << method;
  }
}

TEST(SimulationTest, OccupancySettlesAtTheTargetTimesProductionOverConsumption) {
  // 96 groups run at any time and take about 1,250 s; a step of T seconds
  // trains 96, so production / consumption is about T / 1,250 tokens.
  for (const int64_t train : {1600, 2500, 4000}) {
    for (const char* method : {"raw", "effective"}) {
      const Settings settings = Method(
          Theory({"run.num_steps=240", "batch.num_groups=96", "batch.group_size=2",
                  "admission.window=2048", "admission.ties=fractional", "cluster.rollout_gpus=24",
                  "cluster.slots=8", Concat("cluster.train_seconds=", train),
                  "workload.mean_tokens=1000", "workload.sigma=0.4"}),
          method);
      const SimResult result = Simulate(settings);
      const double produced = MeanOver(result, "throughput/produced", 120, 240);
      const double consumed = MeanOver(result, "throughput/consumed", 120, 240);
      const double predicted = 96 * produced / consumed;
      EXPECT_GT(produced / consumed, 1.1);
      EXPECT_NEAR(result.totals.mean_occupancy_at_step / predicted, 1, 0.15)
          << method << " train " << train << " predicted " << predicted;
    }
  }
}

// docs/method.md section 6.3: N* = N_tar (P/C) (1 + beta CV^2). The correction is
// what small batches need; at 96 it is hardly there.
TEST(SimulationTest, OccupancyOfSmallBatchesFollowsTheCorrectedLaw) {
  for (const int64_t batch : {4, 12, 32}) {
    for (const int64_t train : {2000, 4000}) {
      const Settings settings =
          Method(Theory({"run.num_steps=1600", Concat("batch.num_groups=", batch),
                         "batch.group_size=2", "admission.window=1024", "admission.ties=fractional",
                         Concat("cluster.rollout_gpus=", batch / 4), "cluster.slots=8",
                         Concat("cluster.train_seconds=", train), "workload.mean_tokens=1000",
                         "workload.sigma=0.4"}),
                 "effective");
      const SimResult result = Simulate(settings);
      const size_t begin = 400, end = 1600;
      const double produced = MeanOver(result, "throughput/produced", begin, end);
      const double occupancy = MeanOver(result, "pool/occupancy", begin, end);
      double variance = 0;
      for (size_t i = begin; i < end; ++i) {
        const double off = Find(result.rows[i], "pool/occupancy").value_or(0) - occupancy;
        variance += off * off / static_cast<double>(end - begin);
      }
      const double correction = 1 + settings.admission.beta * variance / (occupancy * occupancy);
      // N_tar = C, so N_tar P/C is the production itself.
      EXPECT_GT(produced / static_cast<double>(batch), 1.1);
      EXPECT_NEAR(occupancy / (produced * correction), 1, 0.05)
          << "batch " << batch << " train " << train << " produced " << produced << " correction "
          << correction;
    }
  }
}

TEST(SimulationTest, ASyncStepTakesTheLongestExponentialResponse) {
  // The largest of n exponential lengths has mean m (1 + 1/2 + ... + 1/n).
  const SimResult result =
      Simulate(Method(Theory({"run.num_steps=2000", "batch.num_groups=8", "batch.group_size=8",
                              "workload.length=exponential", "workload.mean_tokens=1000"}),
                      "sync"));
  double harmonic = 0;
  for (int n = 1; n <= 64; ++n) harmonic += 1.0 / n;
  EXPECT_NEAR(result.totals.mean_step.count() / (1000 * harmonic + 10), 1, 0.03);
  EXPECT_EQ(result.totals.mean_waiting, 0);
  EXPECT_EQ(result.totals.mean_generation, 0);
}

TEST(SimulationTest, ASyncStepTakesTheLongestLognormalResponse) {
  const SimResult result =
      Simulate(Method(Theory({"run.num_steps=2000", "batch.num_groups=8", "batch.group_size=8",
                              "workload.mean_tokens=1000", "workload.sigma=0.6"}),
                      "sync"));
  // E[max] = integral of 1 - F(x)^n.
  const double mu = std::log(1000.0) - 0.18;
  double expected = 0;
  for (double x = 0.5; x < 100000; x += 1) {
    const double below = 0.5 * std::erfc(-(std::log(x) - mu) / 0.6 / std::sqrt(2.0));
    expected += 1 - std::pow(below, 64);
  }
  EXPECT_NEAR(result.totals.mean_step.count() / (expected + 10), 1, 0.03);
}

TEST(SimulationTest, PartsOfAStepSumToTheStepAndStepsToTheRun) {
  const std::vector<Settings> cases = {
      Method(Load("small"), "sync"),
      Method(Load("small"), "async"),
      Method(Load("small", {"cluster.kv_at_sync=keep"}), "effective"),
      Method(Load("small", {"cluster.kv_at_sync=keep", "cluster.rescore_blocks=true"}),
             "effective"),
      Method(Load("small", {"cluster.layout=colocated"}), "effective"),
      Method(Load("small", {"run.checkpoint_every=7", "cluster.checkpoint_s=3"}), "raw")};
  for (const Settings& settings : cases) {
    const SimResult result = SimulateChecked(settings);
    double total = 0;
    for (const MetricsRow& row : result.rows) {
      const double parts = *Find(row, "time/wait_data") + *Find(row, "time/train") +
                           *Find(row, "time/sync") + *Find(row, "time/rescore_visible") +
                           *Find(row, "time/other");
      EXPECT_DOUBLE_EQ(parts, *Find(row, "time/step"));
      EXPECT_GE(*Find(row, "time/rescore_hidden"), 0);
      total += *Find(row, "time/step");
    }
    EXPECT_EQ(static_cast<int64_t>(result.rows.size()), settings.run.num_steps);
    EXPECT_NEAR(total, *Find(result.rows.back(), "time"), 1e-6 * total);
  }
}

TEST(SimulationTest, BlockingRescoringIsVisibleAndOtherwisePartlyHidden) {
  const auto times = [](const char* blocks) {
    return Simulate(Method(Load("time-6gpu", {"run.num_steps=60", "cluster.kv_at_sync=keep",
                                              Concat("cluster.rescore_blocks=", blocks)}),
                           "effective"))
        .totals.mean_times;
  };
  const StepTimes blocking = times("true"), beside = times("false");
  EXPECT_GT(blocking.rescore_visible, Seconds(0.1));
  EXPECT_GT(beside.rescore_hidden, Seconds(0.1));
  EXPECT_LT(beside.rescore_visible, blocking.rescore_visible);
  const StepTimes raw =
      Simulate(Method(Load("time-6gpu", {"run.num_steps=60"}), "raw")).totals.mean_times;
  EXPECT_EQ(raw.rescore_visible + raw.rescore_hidden, Seconds(0));
}

TEST(SimulationTest, UnfilteredWaitingGrowsToTheSupplyBoundAndPaceStopsIt) {
  for (const char* preset : {"time-6gpu", "math-4b"}) {
    const Settings settings = Load(preset, {"run.num_steps=150"});
    const SimResult async = Simulate(Method(settings, "async"));
    const SimResult pace = Simulate(Method(settings, "effective"));
    const char* waiting = "staleness/waiting/mean";
    const char* generation = "staleness/generation/mean";
    // Nine batches may be out: one in training, so a group waits at most eight.
    EXPECT_LT(MeanOver(async, waiting, 0, 3), 3) << preset;
    EXPECT_GT(MeanOver(async, waiting, 100, 150), 6) << preset;
    EXPECT_LT(MeanOver(async, waiting, 100, 150), 8.5) << preset;
    EXPECT_LT(MeanOver(async, generation, 100, 150), 2) << preset;
    EXPECT_NEAR(MeanOver(async, generation, 50, 100), MeanOver(async, generation, 100, 150), 0.5)
        << preset;
    EXPECT_LT(MeanOver(pace, waiting, 100, 150), 3.5) << preset;
    EXPECT_NEAR(MeanOver(pace, waiting, 50, 100), MeanOver(pace, waiting, 100, 150), 0.7) << preset;
  }
}

std::map<std::string, std::string> Files(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    files[std::filesystem::relative(entry.path(), directory).string()] = text.str();
  }
  return files;
}

TEST(SimulationTest, TheSameSeedGivesTheSameBytes) {
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / "pace_sim_same_bytes";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  const auto record = [&root](const std::string& name, const std::vector<std::string>& overrides) {
    const Settings settings = Method(Load("retool-4b", overrides), "effective");
    auto writer = RunWriter::Create((root / name).string(), settings,
                                    {.name = "run", .driver = "sim"}, RecordLevel::kFull);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    SimOptions options;
    options.writer = writer->get();
    Simulate(settings, options);
    EXPECT_TRUE((*writer)->Finish().ok());
    return Files(root / name);
  };
  const std::vector<std::string> base = {"run.num_steps=40", "cluster.failure_every_s=2000"};
  const auto first = record("a", base), second = record("b", base);
  EXPECT_EQ(first, second);
  EXPECT_TRUE(first.contains("events.jsonl") && first.contains("trace.jsonl"));
  EXPECT_GT(first.at("events.jsonl").size(), 10000u);
  auto other_seed = base;
  other_seed.push_back("run.seed=2");
  EXPECT_NE(first.at("metrics.jsonl"), record("c", other_seed).at("metrics.jsonl"));
  std::filesystem::remove_all(root);
}

TEST(SimulationTest, EveryMethodMeetsTheSamePrompts) {
  // The first step draws before any method can differ.
  const Settings settings = Load("small", {"run.num_steps=4"});
  const SimResult async = Simulate(Method(settings, "async")),
                  raw = Simulate(Method(settings, "raw"));
  for (const char* name : {"selection/length_offered", "selection/reward_offered"}) {
    EXPECT_EQ(Find(async.rows[0], name), Find(raw.rows[0], name));
  }
}

TEST(SimulationTest, RunsSurviveLostEnginesAndAccountForTheirTokens) {
  const SimResult result = SimulateChecked(
      Method(Load("small", {"cluster.failure_every_s=20", "cluster.restart_s=5"}), "effective"));
  EXPECT_GT(result.totals.num_lost_workers, 3);
  EXPECT_EQ(result.totals.num_steps, 60);
  EXPECT_GT(result.totals.num_tokens_never_trained, 0);
  EXPECT_GT(result.totals.num_tokens_generated, result.totals.num_tokens_never_trained);
}

TEST(SimulationTest, ToolsCheckpointsEvaluationsAndUpdatesRunToTheEnd) {
  const SimResult result = SimulateChecked(Method(
      Load("retool-4b", {"run.num_steps=25", "run.checkpoint_every=10", "run.evaluate_every=5",
                         "batch.num_updates=2", "supply.sync_interval=3"}),
      "effective"));
  EXPECT_EQ(result.totals.num_steps, 25);
  EXPECT_GT(MeanOver(result, "selection/turns_offered", 0, 25), 2);
}

TEST(SimulationTest, ColocatedTrainingAndGenerationTakeTurns) {
  // Apart, training for 50 s hides all generation; on shared GPUs each step has
  // to make room for generating its batch.
  const auto step = [](const char* layout) {
    return SimulateChecked(Method(Load("small", {Concat("cluster.layout=", layout),
                                                 "cluster.train_seconds=50"}),
                                  "async"))
        .totals.mean_times;
  };
  const StepTimes apart = step("disjoint"), shared = step("colocated");
  EXPECT_NEAR((apart.train + apart.sync).count(), apart.step.count(), 1e-6);
  EXPECT_GT(shared.step, apart.step + Seconds(0.5));
  EXPECT_NEAR(shared.train.count(), 50, 1e-6);
}

TEST(SimulationTest, WhatCannotRunIsRefusedInOneLine) {
  const auto message = [](const std::vector<std::string>& overrides) {
    const auto result = RunSimulation(Load("small", overrides), {});
    return result.ok() ? std::string("accepted") : result.status().message();
  };
  EXPECT_NE(message({"workload.max_tokens=2000000"}).find("workload.max_tokens = 2000000"),
            std::string::npos);
  EXPECT_NE(message({"gpu.memory_gib=4"}).find("gpu.memory_gib = 4"), std::string::npos);
  EXPECT_NE(message({"cluster.layout=colocated", "cluster.failure_every_s=5"})
                .find("cluster.failure_every_s = 5"),
            std::string::npos);
  EXPECT_NE(message({"cluster.failure_every_s=1e-6", "cluster.restart_s=0"}).find("faster"),
            std::string::npos);
  EXPECT_NE(message({"workload.length=file", "workload.lengths_file=/nowhere"}).find("/nowhere"),
            std::string::npos);
}

// --- settings.change ---

TEST(SimulationChangeTest, LongerResponsesComeFromTheStepOn) {
  const Settings settings = Method(Load("small", {"run.num_steps=40", "workload.max_tokens=100000",
                                                  "change.step=20", "change.length=2"}),
                                   "sync");
  const SimResult result = SimulateChecked(settings);
  const double before = MeanOver(result, "selection/length_trained", 0, 20);
  const double after = MeanOver(result, "selection/length_trained", 20, 40);
  EXPECT_NEAR(after / before, 2, 0.2);
}

TEST(SimulationChangeTest, AFasterTrainerTrainsInLessTime) {
  const Settings settings = Method(
      Load("small", {"run.num_steps=40", "change.step=20", "change.trainer_speed=4"}), "sync");
  const SimResult result = SimulateChecked(settings);
  EXPECT_NEAR(MeanOver(result, "time/train", 0, 20) / MeanOver(result, "time/train", 20, 40), 4,
              0.4);
}

TEST(SimulationChangeTest, AnEngineThatLeavesDoesNotReturn) {
  const std::vector<std::string> lost = {"run.num_steps=40", "cluster.rollout_gpus=4",
                                         "change.step=20", "change.lost_engines=3"};
  const SimTotals totals = SimulateChecked(Method(Load("small", lost), "async")).totals;
  EXPECT_EQ(totals.num_lost_workers, 3);
  // Together with losses that do return.
  std::vector<std::string> both = lost;
  both.insert(both.end(), {"cluster.failure_every_s=60", "cluster.restart_s=20"});
  EXPECT_GT(SimulateChecked(Method(Load("small", both), "async")).totals.num_lost_workers, 3);
}

TEST(SimulationChangeTest, OneEngineMustStay) {
  const auto result = RunSimulation(Load("small", {"change.step=5", "change.lost_engines=2"}), {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message().rfind("change.lost_engines = 2: must be <= 1", 0), 0u)
      << result.status().message();
}

}  // namespace
}  // namespace pace
