// A recorded AdmissionSession is a run: replay gives its verdicts again, reports read it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/admission_session.h"
#include "control/lag_bound.h"
#include "core/test_files.h"
#include "record/run_reader.h"
#include "record/session_record.h"
#include "sim/replay.h"
#include "sim/simulation.h"

namespace pace {
namespace {

constexpr int64_t kBatch = 3;
constexpr uint64_t kSeed = 1;

Settings SmallSettings() {
  Settings settings;
  settings.batch.num_groups = kBatch;
  settings.run.seed = kSeed;
  settings.admission.beta = 0;
  settings.admission.min_observations = 4;
  return settings;
}

constexpr int64_t kCheckpoint = 6;

// Draws eight groups a step until three are admitted; returns the verdict lines as replay
// writes them, as far as names go. A killed run takes a checkpoint, goes on for two steps and
// begins again from there.
std::vector<std::string> RunSession(const std::string& directory, const Settings& settings,
                                    bool killed = false) {
  std::vector<std::string> verdicts;
  Result<AdmissionSession> session = AdmissionSession::Create(settings.admission, kBatch, kSeed);
  Result<SessionRecord> record = SessionRecord::Create(directory, settings, 0);
  EXPECT_TRUE(session.ok() && record.ok());
  int64_t next = 0;
  std::optional<SessionRecord::State> state;
  std::string saved;
  size_t num_verdicts = 0;
  int64_t next_at_checkpoint = 0;
  for (int64_t step = 0; step < 12; ++step) {
    if (killed && step == kCheckpoint) {
      Result<SessionRecord::State> flushed = record->Flush(Seconds(step));
      EXPECT_TRUE(flushed.ok());
      state = std::move(flushed).value();
      saved = session->Save();
      num_verdicts = verdicts.size();
      next_at_checkpoint = next;
    }
    if (killed && step == kCheckpoint + 2) {
      session = AdmissionSession::Create(settings.admission, kBatch, kSeed);
      record = InvalidArgument("killed");  // closes its files
      record = SessionRecord::Resume(directory, settings, *state);
      EXPECT_TRUE(session->Restore(saved, "session").ok() && record.ok());
      verdicts.resize(num_verdicts);
      next = next_at_checkpoint;
      step = kCheckpoint;
      killed = false;
    }
    const PolicyVersion served(step > 2 ? step - 2 : 0);
    const StepPlan plan = *session->BeginStep(PolicyVersion(step), 8 + step, served);
    EXPECT_TRUE(record->BeginStep(plan, served, Seconds(step)).ok());
    while (session->in_step().num_admitted < kBatch) {
      const int64_t lag = (next * 7) % 5;
      const PolicyVersion version(step > lag ? step - lag : 0);
      const std::vector<Segment> segments = {{version, 10 + next % 3}};
      const std::vector<MemberSummary> members = {
          MemberSummary::Of(segments, version, 0.01 * static_cast<double>(next % 4))};
      const GroupSummary group = GroupSummary::Of(GroupId(next), version, members, 0);
      const Decision decision = *session->Draw(group);
      const TraceMember traced{version, segments, members[0].prefix_score};
      EXPECT_TRUE(record->Draw(group, {&traced, 1}, decision, {}, served).ok());
      verdicts.push_back(Concat("\"score\":", decision.score, ",\"verdict\":\"",
                                Name(decision.verdict), "\",\"reason\":\"", Name(decision.reason),
                                "\"}\n"));
      ++next;
    }
  }
  EXPECT_TRUE(record->Finish(Seconds(12)).ok());
  return verdicts;
}

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SessionReplayTest, AKilledSessionLeavesTheRecordOfAWholeOne) {
  const std::filesystem::path folder = ScratchFolder();
  const Settings settings = SmallSettings();
  EXPECT_EQ(RunSession((folder / "whole").string(), settings),
            RunSession((folder / "killed").string(), settings, /*killed=*/true));
  for (const char* name : {"trace.jsonl", "decisions.jsonl", "metrics.jsonl", "config.yaml"}) {
    const std::string whole = TextOf(folder / "whole" / name);
    EXPECT_GT(whole.size(), 100U);
    EXPECT_EQ(whole, TextOf(folder / "killed" / name)) << name;
  }
}

TEST(SessionReplayTest, ARecordThatLostLinesIsNotResumed) {
  const std::filesystem::path folder = ScratchFolder();
  const Settings settings = SmallSettings();
  RunSession((folder / "run").string(), settings);
  const Result<SessionRecord> record = SessionRecord::Resume(
      (folder / "run").string(), settings, {.sizes = {{"trace.jsonl", int64_t{1} << 40}}});
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.status().code(), StatusCode::kDataLoss);
}

TEST(SessionReplayTest, ReplayGivesTheVerdictsOfARecordedSession) {
  const std::string directory = (ScratchFolder() / "run").string();
  const Settings settings = SmallSettings();
  const std::vector<std::string> verdicts = RunSession(directory, settings);
  size_t next = 0, num_rejected = 0, num_guarded = 0;
  const Status status = ReplayTrace(
      directory + "/trace.jsonl", settings.admission, kSeed, [&](std::string_view line) {
        if (line.find("\"group\"") == std::string_view::npos) return;
        ASSERT_LT(next, verdicts.size());
        EXPECT_TRUE(line.ends_with(verdicts[next])) << line << verdicts[next];
        num_rejected += line.find("\"reject\"") != std::string_view::npos;
        num_guarded += line.find("freshest_possible") != std::string_view::npos;
        ++next;
      });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(next, verdicts.size());
  EXPECT_GT(num_rejected, 0U);
  EXPECT_GT(num_guarded, 0U);
}

TEST(SessionReplayTest, ARecordedSessionReadsAsARun) {
  const std::string directory = (ScratchFolder() / "run").string();
  const std::vector<std::string> verdicts = RunSession(directory, SmallSettings());
  const Result<RunData> run = ReadRun(directory);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->manifest.driver, "session");
  EXPECT_EQ(run->decisions.size(), verdicts.size());
  EXPECT_EQ(run->metrics.num_rows(), 12);
  EXPECT_EQ(run->settings.batch.num_groups, kBatch);
}

TEST(SessionReplayTest, ASimulationTakesAPolicyInPlaceOfTheSettings) {
  Result<Settings> settings =
      LoadSettings("math-4b", {"run.num_steps=12", "admission.policy=stale_k", "admission.k=1"});
  const Result<SimResult> built_in = RunSimulation(*settings, {});
  settings->admission.k = 100;
  const Result<SimResult> other = RunSimulation(*settings, {});
  SimOptions options;
  options.admission = [] { return std::make_unique<StaleK>(1, StaleKMeasure::kMean); };
  const Result<SimResult> own = RunSimulation(*settings, options);
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->rows, built_in->rows);
  EXPECT_NE(own->rows, other->rows);
}

}  // namespace
}  // namespace pace
