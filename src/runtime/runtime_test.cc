#include "runtime/runtime.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "execution/checkpoint.h"
#include "execution/small_run.h"
#include "model/decoder.h"

namespace pace {
namespace {

RunResult RunOk(const Settings& settings, const RunSetup& options = {}) {
  const Policy policy = SmallPolicy(settings);
  Result<RunResult> result = RunTraining(settings, policy, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : RunResult{};
}

std::string ScratchFolder(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(PACE_BINARY_DIR) / "runtime_scratch" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

TEST(RuntimeTest, EveryMethodRunsToItsEnd) {
  for (const char* method :
       {"sync", "async", "m2po", "raw", "generation", "waiting", "effective", "stale-2"}) {
    const RunResult result = RunOk(SmallSettings({"run.num_steps=4"}, method));
    EXPECT_EQ(result.rows.size(), 4U) << method;
    EXPECT_FALSE(result.stopped_early);
  }
}

TEST(RuntimeTest, SeveralEnginesShareTheWork) {
  const RunResult result = RunOk(SmallSettings({"engine.count=2", "run.evaluate_every=3"}));
  EXPECT_EQ(result.rows.size(), 6U);
  EXPECT_EQ(result.evaluations.size(), 3U);
}

TEST(RuntimeTest, WeightsArePreparedOncePerPublishedVersionForAllEngines) {
  struct Published final : RunObserver {
    std::vector<int64_t> versions;
    void OnPublished(PolicyVersion version) override { versions.push_back(version.step()); }
  } observer;
  RunOk(SmallSettings({"engine.count=2", "supply.sync_interval=2"}), {.observer = &observer});
  EXPECT_EQ(observer.versions, (std::vector<int64_t>{0, 2, 4, 6}));
}

// Fails for good at a pass.
class FailingDecoder final : public Decoder {
 public:
  FailingDecoder(std::unique_ptr<Decoder> inner, int64_t num_passes)
      : inner_(std::move(inner)), num_passes_(num_passes) {}
  const ModelConfig& config() const override { return inner_->config(); }
  int64_t num_blocks() const override { return inner_->num_blocks(); }
  bool deterministic() const override { return inner_->deterministic(); }
  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override {
    return inner_->Prepare(weights);
  }
  void Install(std::shared_ptr<const DecoderWeights> weights) override {
    inner_->Install(std::move(weights));
  }
  Result<PassResult> Run(const Pass& pass) override {
    if (--num_passes_ < 0) return Unavailable("the device failed");
    return inner_->Run(pass);
  }
  void CopyBlocks(std::span<const BlockCopy> copies) override { inner_->CopyBlocks(copies); }

 private:
  Result<std::vector<float>> RunCached(std::span<const ScoreRequest> scores) override {
    return inner_->ScoreCached(scores);
  }
  const std::unique_ptr<Decoder> inner_;
  int64_t num_passes_;
};

// Engines in the order of their numbers; those without a number of passes never fail.
RunSetup WithFailures(const std::map<int64_t, int64_t>& num_passes, RunObserver* observer) {
  RunSetup setup;
  setup.observer = observer;
  setup.wrap_decoder = [num_passes](int64_t engine, std::unique_ptr<Decoder> decoder) {
    const auto found = num_passes.find(engine);
    if (found == num_passes.end()) return decoder;
    return std::unique_ptr<Decoder>(new FailingDecoder(std::move(decoder), found->second));
  };
  return setup;
}

TEST(RuntimeTest, AnEngineWhosePassFailsIsLostAndTheOthersGoOn) {
  struct Notes final : RunObserver {
    std::vector<std::string> notes;
    void OnNote(const std::string& note) override { notes.push_back(note); }
  };
  for (const char* method : {"async", "effective", "sync"}) {
    for (const int64_t passes : {0, 7, 60}) {
      Notes observer;
      const Settings settings = SmallSettings({"engine.count=3", "run.evaluate_every=3"}, method);
      // The first engine lays out weights for all until then.
      const RunResult result = RunOk(settings, WithFailures({{0, passes}, {2, passes}}, &observer));
      EXPECT_EQ(result.rows.size(), 6U) << method << " " << passes;
      ASSERT_FALSE(observer.notes.empty());
      EXPECT_NE(observer.notes[0].find("failed and is lost; 2 left: the device failed"),
                std::string::npos)
          << observer.notes[0];
    }
  }
}

TEST(RuntimeTest, ARunEndsWhenTheLastEngineFails) {
  const Settings settings = SmallSettings({"engine.count=2"});
  RunObserver observer;
  const Result<RunResult> result =
      RunTraining(settings, SmallPolicy(settings), WithFailures({{0, 5}, {1, 9}}, &observer));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "the device failed");
}

TEST(RuntimeTest, KeptPrefixesAreTrainedOn) {
  const Settings settings = SmallSettings({"supply.threshold=2"}, "async");
  RunSetup setup;
  setup.make_supply = [&] {
    return std::make_unique<StoppingSupply>(settings, Abandon::kKeepPrefix, GroupId(12));
  };
  const RunResult result = RunOk(settings, setup);
  ASSERT_EQ(result.rows.size(), 6U);
  EXPECT_EQ(Find(result.rows.back(), "cost/tokens_never_trained"), 0);
}

TEST(RuntimeTest, DrainedSyncsInterruptNothing) {
  for (const MetricsRow& row : RunOk(SmallSettings({"engine.sync=drain"}, "async")).rows) {
    EXPECT_EQ(Find(row, "rollout/interrupted"), 0);
  }
}

// Groups by the step that trained them, from the events of a run.
std::multiset<int64_t> TrainedGroups(const std::string& directory) {
  std::multiset<int64_t> groups;
  std::ifstream file(directory + "/decisions.jsonl");
  std::string line;
  while (std::getline(file, line)) {
    if (line.find("\"verdict\":\"admit\"") == std::string::npos) continue;
    const size_t at = line.find("\"group\":");
    groups.insert(std::stoll(line.substr(at + 8)));
  }
  return groups;
}

// Stops a run of 12 steps after the fifth and resumes it.
void StopAndGoOn(const Settings& settings, const std::string& name) {
  const std::string directory = ScratchFolder(name) + "/run";
  Result<std::unique_ptr<RunWriter>> writer = RunWriter::Create(
      directory, settings, {.name = "test", .driver = "runtime"}, RecordLevel::kFull);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  const std::string checkpoints = directory + "/checkpoints";
  struct Counter final : RunObserver {
    int64_t steps = 0;
    std::string folder;
    void OnStep(int64_t done, const MetricsRow&) override { steps = done; }
    void OnCheckpoint(const std::string& saved) override { folder = saved; }
  } counter;
  const RunResult first = RunOk(settings, {.writer = writer->get(),
                                           .checkpoints = checkpoints,
                                           .observer = &counter,
                                           .stop = [&] { return counter.steps >= 5; }});
  EXPECT_TRUE(first.stopped_early);
  ASSERT_TRUE((*writer)->Finish().ok());
  writer->reset();
  const Result<LoadedCheckpoint> saved =
      LoadNewestCheckpoint(checkpoints, [](const std::string& note) { FAIL() << note; });
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  Result<std::unique_ptr<RunWriter>> again =
      RunWriter::Resume(directory, RecordLevel::kFull, false, saved->run.record_sizes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  const RunResult rest =
      RunOk(settings, {.writer = again->get(), .checkpoints = checkpoints, .resume = true});
  ASSERT_TRUE((*again)->Finish().ok());
  EXPECT_EQ(rest.steps_done, 12);
  const std::multiset<int64_t> trained = TrainedGroups(directory);
  EXPECT_EQ(trained.size(), 12U * 3U);
  EXPECT_EQ(std::set<int64_t>(trained.begin(), trained.end()).size(), trained.size());
}

TEST(RuntimeTest, AStoppedRunGoesOnAndTrainsNoGroupTwice) {
  StopAndGoOn(SmallSettings({"run.num_steps=12", "run.checkpoint_every=3"}), "resume");
}

// A drained sync lasts for steps, so that engines are behind at most checkpoints.
TEST(RuntimeTest, ARunWhoseSyncsTakeLongIsSavedAndGoesOn) {
  for (int round = 0; round < 5; ++round) {
    StopAndGoOn(SmallSettings({"run.num_steps=12", "run.checkpoint_every=1", "engine.sync=drain",
                               "engine.count=2"},
                              "async"),
                "resume_drained");
  }
}

}  // namespace
}  // namespace pace
