// What a run leaves for people: responses as text, and warnings.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>

#include "execution/small_run.h"
#include "lab/lab.h"
#include "record/run_reader.h"
#include "record/run_writer.h"

namespace pace {
namespace {

// A run's directory and what was said while it ran.
struct Recorded {
  std::string directory;
  std::vector<std::string> warnings;
  std::vector<MetricsRow> rows;
};

Recorded Record(const std::string& name, const Settings& settings, const Policy& policy) {
  Recorded out;
  out.directory = (std::filesystem::path(PACE_BINARY_DIR) / "lab_scratch" / name).string();
  std::filesystem::remove_all(out.directory);
  std::filesystem::create_directories(std::filesystem::path(out.directory).parent_path());
  Result<std::unique_ptr<RunWriter>> writer = RunWriter::Create(
      out.directory, settings, {.name = "effective", .driver = "lab"}, RecordLevel::kDecisions);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  struct Heard final : RunObserver {
    std::vector<std::string> warnings;
    void OnWarning(const std::string& text) override { warnings.push_back(text); }
  } heard;
  Result<RunResult> result =
      RunLab(settings, policy, {.writer = writer->get(), .observer = &heard});
  EXPECT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE((*writer)->Finish().ok());
  out.warnings = std::move(heard.warnings);
  if (result.ok()) out.rows = std::move(result->rows);
  return out;
}

std::vector<ResponseRecord> LinesOf(const std::string& directory) {
  std::vector<ResponseRecord> records;
  std::ifstream file(directory + "/responses.jsonl");
  for (std::string line; std::getline(file, line);) {
    Result<ResponseRecord> record = ParseResponseLine(line);
    EXPECT_TRUE(record.ok()) << record.status().message();
    if (record.ok()) records.push_back(std::move(*record));
  }
  return records;
}

TEST(LabRecordsTest, ASampleOfEveryStepAndEvaluationIsText) {
  const Settings settings = SmallSettings({"run.evaluate_every=3"});
  const Recorded run = Record("sample", settings, SmallPolicy(settings));
  std::map<int64_t, int> of_step;
  int num_evaluated = 0;
  for (const ResponseRecord& record : LinesOf(run.directory)) {
    ASSERT_FALSE(record.turns.empty());
    EXPECT_FALSE(record.prompt.empty());
    EXPECT_FALSE(record.answer.empty());
    EXPECT_FALSE(record.finish.empty());
    EXPECT_GT(record.length, 0);
    if (!record.benchmark.empty()) {
      ++num_evaluated;
      EXPECT_EQ(record.benchmark, "held_out");
      continue;
    }
    ++of_step[record.head.step];
    EXPECT_FALSE(record.picked.empty());
    EXPECT_TRUE(record.head.reason.has_value());
  }
  EXPECT_EQ(of_step.size(), 6u);
  for (const auto& [step, count] : of_step) {
    EXPECT_GE(count, 2) << step;
    EXPECT_LE(count, 8) << step;
  }
  EXPECT_EQ(num_evaluated, 3 * 4);  // versions 0, 3 and 6, four problems each
  const Result<RunData> read = ReadRun(run.directory);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_FALSE(read->responses.empty());
  EXPECT_EQ(read->evaluated.size(), 4u);
}

TEST(LabRecordsTest, AStopAfterTheLastStepLeavesNoTrace) {
  for (const std::string every : {"2", "4"}) {
    const Settings settings = SmallSettings({"run.num_steps=6", "run.checkpoint_every=" + every});
    const auto events = [&](const std::string& name, int64_t stop_after) {
      const std::filesystem::path directory =
          std::filesystem::path(PACE_BINARY_DIR) / "lab_scratch" / name;
      std::filesystem::remove_all(directory);
      std::filesystem::create_directories(directory.parent_path());
      Result<std::unique_ptr<RunWriter>> writer = RunWriter::Create(
          directory.string(), settings, {.name = "effective", .driver = "lab"}, RecordLevel::kFull);
      EXPECT_TRUE(writer.ok()) << writer.status().message();
      struct Counted final : RunObserver {
        int64_t steps = 0;
        void OnStep(int64_t done, const MetricsRow&) override { steps = done; }
      } counted;
      const Result<RunResult> result =
          RunLab(settings, SmallPolicy(settings),
                 {.writer = writer->get(),
                  .checkpoints = (directory / "checkpoints").string(),
                  .observer = &counted,
                  .stop = [&] { return counted.steps >= stop_after; }});
      EXPECT_TRUE(result.ok() && !result->stopped_early);
      EXPECT_TRUE((*writer)->Finish().ok());
      std::ifstream file(directory / "events.jsonl");
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const std::string whole = events("never-stopped", 99);
    EXPECT_NE(whole, "");
    EXPECT_EQ(events("stopped-last", 6), whole);
  }
}

TEST(LabRecordsTest, AllOrNoneAreRecordedWhereThatIsAsked) {
  Settings settings = SmallSettings({"record.responses=all", "run.num_steps=2"});
  const Recorded all = Record("all", settings, SmallPolicy(settings));
  double drawn = 0;
  for (const MetricsRow& row : all.rows) drawn += Find(row, "admission/offered").value();
  EXPECT_EQ(static_cast<double>(LinesOf(all.directory).size()),
            drawn * static_cast<double>(settings.batch.group_size));
  settings.record.responses = RecordResponses::kNone;
  const Recorded none = Record("none", settings, SmallPolicy(settings));
  EXPECT_FALSE(std::filesystem::exists(none.directory + "/responses.jsonl"));
}

TEST(LabRecordsTest, WarningsAreSaidAndRecorded) {
  // Nothing is right, and without the penalty of long responses all rewards are equal.
  const Settings settings =
      SmallSettings({"run.num_steps=4", "train.overlong_buffer=0", "admission.min_observations=32",
                     "task.modulus=100", "task.min_numbers=4", "generation.max_tokens=4"});
  const Recorded run = Record("warnings", settings, SmallPolicy(settings));
  ASSERT_FALSE(run.warnings.empty());
  EXPECT_EQ(run.warnings.front(), "PACE is warming up: 3 of 32 scores; nothing is rejected yet");
  const Result<RunData> read = ReadRun(run.directory);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->warnings.size(), run.warnings.size());
  bool equal_rewards = false;
  for (size_t i = 0; i < run.warnings.size(); ++i) {
    EXPECT_EQ(read->warnings[i].text, run.warnings[i]);
    equal_rewards = equal_rewards || read->warnings[i].kind == WarningKind::kEqualRewards;
  }
  EXPECT_TRUE(equal_rewards);
  EXPECT_EQ(Find(run.rows.back(), "selection/equal_rewards_trained"), 1);
}

TEST(LabRecordsTest, UpdatesThatAreNotFiniteAreNamed) {
  const Settings settings = SmallSettings({"run.num_steps=3"});
  Policy policy = SmallPolicy(settings);
  // As a model that diverged; LoadPolicy refuses such a file.
  auto bytes = std::make_shared<std::vector<std::vector<std::byte>>>();
  TensorViews views;
  for (const auto& [name, view] : policy.weights.views()) {
    bytes->emplace_back(view.bytes.begin(), view.bytes.end());
  }
  size_t at = 0;
  for (const auto& [name, view] : policy.weights.views()) {
    if (name == "model.norm.weight") {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy((*bytes)[at].data(), &nan, sizeof(nan));
    }
    views[name] = {view.dtype, view.shape, (*bytes)[at++]};
  }
  Result<WeightSet> weights = WeightSet::Create(policy.config, std::move(views), bytes);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  policy.weights = std::move(weights).value();
  const Recorded run = Record("skipped", settings, policy);
  bool named = false;
  for (const std::string& warning : run.warnings) {
    named = named || warning.find("skipped an update") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

}  // namespace
}  // namespace pace
