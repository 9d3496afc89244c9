#include "lab/lab.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/crc32c.h"
#include "execution/checkpoint.h"
#include "execution/small_run.h"

namespace pace {
namespace {

RunResult RunOk(const Settings& settings, const RunSetup& options = {}) {
  const Policy policy = SmallPolicy(settings);
  Result<RunResult> result = RunLab(settings, policy, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : RunResult{};
}

std::string ScratchFolder(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(PACE_BINARY_DIR) / "lab_scratch" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

TEST(LabTest, TheSameRunTwiceGivesTheSameBits) {
  const Settings settings = SmallSettings();
  const RunResult one = RunOk(settings);
  const RunResult two = RunOk(settings);
  EXPECT_TRUE(SameWeights(one.weights, two.weights));
  EXPECT_EQ(one.rows, two.rows);
  EXPECT_EQ(one.rows.size(), 6U);
  EXPECT_FALSE(SameWeights(one.weights, SmallPolicy(settings).weights));
}

TEST(LabTest, ThreadsOfTheDriverChangeNothing) {
  const Settings settings = SmallSettings({"cluster.rollout_gpus=2"});
  const RunResult one = RunOk(settings, {.num_threads = 1});
  const RunResult two = RunOk(settings, {.num_threads = 2});
  EXPECT_TRUE(SameWeights(one.weights, two.weights));
  EXPECT_EQ(one.rows, two.rows);
}

TEST(LabTest, EventsAreTheSameOnEveryProcessor) {
  // Gradients depend on LibTorch's kernels; with a fixed policy and prescribed lengths all
  // that is left is the clock and the coordinator.
  const Settings settings = SmallSettings(
      {"generation.mean_tokens=6", "train.learning_rate=0", "run.num_steps=5"}, "async");
  const std::string folder = ScratchFolder("events");
  std::filesystem::remove(folder);
  const auto writer = RunWriter::Create(folder, settings, {"async", "lab"}, RecordLevel::kFull);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  RunSetup options;
  options.writer = writer->get();
  EXPECT_EQ(RunOk(settings, options).rows.size(), 5U);
  ASSERT_TRUE((*writer)->Finish().ok());
  std::ifstream file(folder + "/events.jsonl", std::ios::binary);
  std::ostringstream events;
  events << file.rdbuf();
  EXPECT_EQ(Crc32c(events.str()), 1984316195U);
}

TEST(LabTest, AnotherSeedIsAnotherRun) {
  const RunResult one = RunOk(SmallSettings());
  const RunResult two = RunOk(SmallSettings({"run.seed=2"}));
  EXPECT_FALSE(SameWeights(one.weights, two.weights));
}

TEST(LabTest, EveryMethodRuns) {
  for (const char* method : {"sync", "async", "m2po", "raw", "generation", "waiting", "effective",
                             "stale-2", "oldest-3"}) {
    const RunResult result = RunOk(SmallSettings({"run.num_steps=3"}, method));
    EXPECT_EQ(result.rows.size(), 3U) << method;
  }
}

TEST(LabTest, SyncTrainsOnNothingStale) {
  for (const MetricsRow& row : RunOk(SmallSettings({}, "sync")).rows) {
    EXPECT_EQ(Find(row, "staleness/waiting/mean"), 0);
    EXPECT_EQ(Find(row, "staleness/generation/mean"), 0);
  }
}

// Responses of one version and its training differ by the rounding of their weights alone.
TEST(LabTest, ResponsesOfRoundedWeightsDivergeFromThePolicy) {
  const auto largest_kl = [](const char* quantization) {
    double largest = 0;
    for (const MetricsRow& row : RunOk(SmallSettings({quantization}, "sync")).rows) {
      largest = std::max(largest, std::abs(Find(row, "train/kl").value()));
    }
    return largest;
  };
  EXPECT_LT(largest_kl("engine.quantization=none"), 1e-6);
  EXPECT_GT(largest_kl("engine.quantization=fp8"), 1e-4);
}

TEST(LabTest, AFixedPolicyStaysAsItIs) {
  const Settings settings = SmallSettings({"train.learning_rate=0"});
  EXPECT_TRUE(SameWeights(RunOk(settings).weights, SmallPolicy(settings).weights));
}

TEST(LabTest, SeveralUpdatesPerStepAndRareSyncs) {
  const RunResult result =
      RunOk(SmallSettings({"batch.num_updates=3", "supply.sync_interval=2"}, "async"));
  EXPECT_EQ(result.rows.size(), 6U);
}

TEST(LabTest, DynamicSamplingTrainsOnGroupsThatDiffer) {
  // Random digits are right now and then, so most groups are wrong throughout.
  const Settings settings =
      SmallSettings({"train.dynamic_sampling=true", "train.overlong_buffer=0", "task.modulus=10",
                     "task.min_numbers=3", "run.num_steps=3", "batch.num_groups=2"});
  const Policy policy = SmallPolicy(settings);
  const Result<RunResult> result = RunLab(settings, policy, {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (const MetricsRow& row : result->rows) {
    const double reward = Find(row, "train/reward").value_or(0);
    EXPECT_GE(reward, 0.25);  // one of four in each group
    EXPECT_LE(reward, 0.75);
  }
}

TEST(LabTest, ARunResumedFromAnyCheckpointEndsInTheSameWeights) {
  for (const char* interval : {"1", "2"}) {
    const Settings settings =
        SmallSettings({"run.checkpoint_every=1", "checkpoint.keep=0", "run.evaluate_every=3",
                       std::string("supply.sync_interval=") + interval, "cluster.rollout_gpus=2",
                       "cluster.sync_overhead_s=0.013"});
    const std::string folder = ScratchFolder(std::string("resume-") + interval);
    const RunResult whole = RunOk(settings, {.checkpoints = folder});
    for (int last = 5; last >= 1; --last) {
      // As if the run had been killed before a later checkpoint.
      for (int later = last + 1; later <= 6; ++later) {
        std::filesystem::remove_all(folder + "/step-00000" + std::to_string(later));
      }
      const RunResult rest = RunOk(settings, {.checkpoints = folder, .resume = true});
      EXPECT_TRUE(SameWeights(whole.weights, rest.weights)) << "from step " << last;
      const std::vector<MetricsRow> expected(whole.rows.begin() + last, whole.rows.end());
      EXPECT_EQ(rest.rows, expected) << "from step " << last;
      EXPECT_EQ(rest.time, whole.time);
    }
  }
}

// Tells a run to stop once it has done so many steps, and remembers what it saved.
struct StopAfter final : RunObserver {
  explicit StopAfter(int64_t last) : last_step(last) {}
  int64_t last_step;
  int64_t steps = 0;
  std::string folder;
  void OnStep(int64_t done, const MetricsRow&) override { steps = done; }
  void OnCheckpoint(const std::string& saved) override { folder = saved; }
  std::function<bool()> stop() {
    return [this] { return steps >= last_step; };
  }
};

TEST(LabTest, AStopLeavesNoTraceInTheRunThatGoesOn) {
  const Settings settings = SmallSettings({"run.checkpoint_every=2", "checkpoint.keep=1"});
  const RunResult whole = RunOk(settings, {.checkpoints = ScratchFolder("unstopped")});
  for (const int64_t last : {1, 2, 3, 4, 5}) {
    const std::string folder = ScratchFolder("stopped");
    StopAfter observer(last);
    const RunResult first =
        RunOk(settings, {.checkpoints = folder, .observer = &observer, .stop = observer.stop()});
    EXPECT_TRUE(first.stopped_early);
    EXPECT_EQ(first.steps_done, last);
    // The step is saved, whether the run never stopped is saved there or not.
    EXPECT_EQ(observer.folder, folder + "/step-00000" + std::to_string(last));
    std::vector<std::string> notes;
    Result<std::optional<LoadedCheckpoint>> found =
        FindCheckpoint(folder, ResumeFrom::kNewestScheduled,
                       [&](const std::string& note) { notes.push_back(note); });
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(notes.size(), last % 2 == 1 ? 1U : 0U);
    ASSERT_EQ(found->has_value(), last > 1);
    const int64_t from = last / 2 * 2;
    LoadedCheckpoint* const loaded = found->has_value() ? &**found : nullptr;
    if (loaded != nullptr) {
      EXPECT_EQ(loaded->run.step, PolicyVersion(from));
    }
    const RunResult rest =
        RunOk(settings, {.checkpoints = folder, .resume = loaded != nullptr, .loaded = loaded});
    EXPECT_TRUE(SameWeights(whole.weights, rest.weights)) << last;
    const std::vector<MetricsRow> expected(whole.rows.begin() + from, whole.rows.end());
    EXPECT_EQ(rest.rows, expected) << last;
    EXPECT_EQ(rest.time, whole.time);
  }
}

TEST(LabTest, TheLastStepIsSavedAndTheRunCanBeMadeLonger) {
  const std::string folder = ScratchFolder("longer");
  RunOk(SmallSettings({"run.num_steps=3"}), {.checkpoints = folder});
  EXPECT_EQ(NewestCheckpointFolder(folder), folder + "/step-000003");
  const RunResult longer =
      RunOk(SmallSettings({"run.num_steps=5"}), {.checkpoints = folder, .resume = true});
  EXPECT_EQ(longer.steps_done, 5);
  EXPECT_EQ(longer.rows.size(), 2U);
}

TEST(LabTest, WeightsArePreparedOncePerPublishedVersionForAllEngines) {
  struct Published final : RunObserver {
    std::vector<int64_t> versions;
    void OnPublished(PolicyVersion version) override { versions.push_back(version.step()); }
  } observer;
  const Settings settings =
      SmallSettings({"cluster.rollout_gpus=2", "supply.sync_interval=2", "run.checkpoint_every=2"});
  RunOk(settings, {.observer = &observer});
  EXPECT_EQ(observer.versions, (std::vector<int64_t>{0, 2, 4, 6}));
}

// Under a policy that stops groups as they run; tokens that no step trained on.
RunResult RunStopping(Abandon how, const std::string& checkpoints = "", bool resume = false) {
  const Settings settings =
      SmallSettings({"cluster.rollout_gpus=1", "cluster.train_seconds=0.01", "supply.threshold=1",
                     "run.checkpoint_every=1", "checkpoint.keep=0"},
                    "async");
  RunSetup setup;
  setup.checkpoints = checkpoints;
  setup.resume = resume;
  setup.make_supply = [&] { return std::make_unique<StoppingSupply>(settings, how, GroupId(12)); };
  return RunOk(settings, setup);
}

TEST(LabTest, KeptPrefixesAreTrainedOn) {
  const auto lost = [](const RunResult& run) {
    return Find(run.rows.back(), "cost/tokens_never_trained");
  };
  EXPECT_GT(lost(RunStopping(Abandon::kDrop)), 0);
  const std::string folder = ScratchFolder("kept");
  const RunResult whole = RunStopping(Abandon::kKeepPrefix, folder);
  EXPECT_EQ(lost(whole), 0);
  // A run killed while prefixes wait for their group is the same run.
  bool saved = false;
  for (int last = 5; last >= 1; --last) {
    const std::string name = folder + "/step-00000";
    std::filesystem::remove_all(name + std::to_string(last + 1));
    saved = saved || std::filesystem::exists(name + std::to_string(last) + "/kept.bin");
    const RunResult rest = RunStopping(Abandon::kKeepPrefix, folder, /*resume=*/true);
    EXPECT_TRUE(SameWeights(whole.weights, rest.weights)) << "from step " << last;
    for (int later = last + 1; later <= 6; ++later) {
      std::filesystem::remove_all(name + std::to_string(later));
    }
  }
  EXPECT_TRUE(saved);
}

TEST(LabTest, ASaveThatFailsLeavesNothing) {
  const std::string folder = ScratchFolder("failing");
  std::ofstream(folder + "/step-000003") << "in the way";
  const Settings settings = SmallSettings({"run.num_steps=3"});
  const Policy policy = SmallPolicy(settings);
  const Result<RunResult> result =
      RunLab(settings, policy, {.checkpoints = folder + "/step-000003"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message().find('\n'), std::string::npos);
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  EXPECT_EQ(count, 1U);
}

TEST(LabTest, ADamagedCheckpointIsSkippedWithANote) {
  const Settings settings = SmallSettings({"run.checkpoint_every=2", "checkpoint.keep=0"});
  const std::string folder = ScratchFolder("damaged");
  const RunResult whole = RunOk(settings, {.checkpoints = folder});
  std::filesystem::resize_file(folder + "/step-000006/optimizer.safetensors", 100);
  std::filesystem::remove(folder + "/step-000004/coordinator.json");
  struct Notes final : RunObserver {
    std::vector<std::string> notes;
    void OnNote(const std::string& note) override { notes.push_back(note); }
  } observer;
  const RunResult rest =
      RunOk(settings, {.checkpoints = folder, .resume = true, .observer = &observer});
  EXPECT_EQ(observer.notes.size(), 2U);
  EXPECT_TRUE(SameWeights(whole.weights, rest.weights));
}

TEST(LabTest, OldCheckpointsGo) {
  const std::string folder = ScratchFolder("keep");
  RunOk(SmallSettings({"run.checkpoint_every=1", "checkpoint.keep=2"}), {.checkpoints = folder});
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  EXPECT_EQ(count, 2U);
}

TEST(LabTest, WhatTheLabCannotDoIsRefused) {
  const Settings settings = SmallSettings({"cluster.failure_every_s=10"});
  const Policy policy = SmallPolicy(settings);
  const Result<RunResult> result = RunLab(settings, policy, {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("cluster.failure_every_s"), std::string::npos);
}

}  // namespace
}  // namespace pace
