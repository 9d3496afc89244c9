#include "record/run_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace pace {
namespace {

std::string Fresh(const std::string& name) {
  const std::string path = testing::TempDir() + "run_writer_" + name;
  std::filesystem::remove_all(path);
  return path;
}

std::string Text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

GroupSummary SomeGroup(std::vector<MemberSummary>& members) {
  const Segment segments[] = {{PolicyVersion(3), 10}, {PolicyVersion(4), 30}};
  members = {MemberSummary::Of(segments, PolicyVersion(5), 0.04)};
  return GroupSummary::Of(GroupId(91), PolicyVersion(5), members, 0);
}

StepPlan SomePlan() {
  StepPlan plan;
  plan.step = PolicyVersion(7);
  plan.occupancy = 31;
  plan.budget = 0.4;
  return plan;
}

void WriteSmallRun(RunWriter& writer) {
  std::vector<MemberSummary> members;
  const GroupSummary group = SomeGroup(members);
  Decision decision;
  decision.verdict = Verdict::kReject;
  decision.reason = Reason::kOverCutoff;
  decision.waiting = 2;
  decision.generation = 1.25;
  decision.weight = 0.99;
  decision.score = 2.2475;
  decision.prefix_score = 0.04;
  ASSERT_TRUE(writer.WriteTraceStep(SomePlan(), 12, PolicyVersion(6)).ok());
  ASSERT_TRUE(writer.WriteDecision(SomePlan(), group, decision, {812.5, 0.25, 1}).ok());
  const Segment segments[] = {{PolicyVersion(3), 10}, {PolicyVersion(4), 30}};
  const TraceMember member{PolicyVersion(5), segments, 0.04};
  const TraceMember unscored{PolicyVersion(5), segments, std::nullopt};
  ASSERT_TRUE(writer.WriteTraceDraw(GroupId(91), {{member, unscored}}, PolicyVersion(6)).ok());
  ASSERT_TRUE(writer.WriteTraceDraw(GroupId(92), {{unscored}}, PolicyVersion(7)).ok());
  ASSERT_TRUE(writer.WriteTraceDraw(GroupId(93), {{unscored}}, PolicyVersion(7)).ok());
  ASSERT_TRUE(writer.WriteTraceDraw(GroupId(94), {{unscored}}, std::nullopt).ok());
  ASSERT_TRUE(writer.WriteEvent(R"({"event":"stop_requested"})").ok());
  ASSERT_TRUE(writer.WriteMetrics({{"step", 7}, {"time", 1.5}, {"x", std::nan("")}}).ok());
  ASSERT_TRUE(writer.Finish().ok());
}

std::unique_ptr<RunWriter> Make(const std::string& directory, RecordLevel level) {
  Result<std::unique_ptr<RunWriter>> writer =
      RunWriter::Create(directory, Settings(), {"the \"run\"", "sim"}, level);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  return std::move(*writer);
}

TEST(RunWriterTest, WritesTheLinesOfTheRunDirectoryDocument) {
  const std::string directory = Fresh("lines");
  WriteSmallRun(*Make(directory, RecordLevel::kFull));
  EXPECT_EQ(Text(directory + "/decisions.jsonl"),
            R"({"step":7,"group":91,"verdict":"reject","reason":"over_cutoff","waiting":2,)"
            R"("waiting_assembly":0,"generation":1.25,"lag":3.25,"prefix_score":0.04,)"
            R"("percentile":null,"weight":0.99,"score":2.2475,"cutoff":null,"budget":0.4,)"
            R"("occupancy":31,"length":812.5,"reward":0.25,"turns":1})"
            "\n");
  EXPECT_EQ(Text(directory + "/trace.jsonl"),
            R"({"step":7,"occupancy":31,"batch":12,"served":6}
{"group":91,"members":[{"completed":5,"segments":[[3,10],[4,30]],"prefix_score":0.04},{"completed":5,"segments":[[3,10],[4,30]],"prefix_score":null}]}
{"group":92,"members":[{"completed":5,"segments":[[3,10],[4,30]],"prefix_score":null}],"served":7}
{"group":93,"members":[{"completed":5,"segments":[[3,10],[4,30]],"prefix_score":null}]}
{"group":94,"members":[{"completed":5,"segments":[[3,10],[4,30]],"prefix_score":null}],"served":null}
)");
  EXPECT_EQ(Text(directory + "/events.jsonl"), "{\"event\":\"stop_requested\"}\n");
  EXPECT_EQ(Text(directory + "/metrics.jsonl"), "{\"step\":7,\"time\":1.5,\"x\":null}\n");
  const std::string manifest = Text(directory + "/manifest.json");
  EXPECT_EQ(manifest.find(R"({"format":1,"name":"the \"run\"","driver":"sim",)"
                          R"("method":"effective","seed":1,"pace":{"version":)"),
            0u)
      << manifest;
  EXPECT_NE(manifest.find(R"("record":"full"})"), std::string::npos) << manifest;
  EXPECT_EQ(Text(directory + "/config.yaml"), ToYaml(Settings()));
}

TEST(RunWriterTest, TheSameRunGivesTheSameBytes) {
  const std::string one = Fresh("same_1"), two = Fresh("same_2");
  WriteSmallRun(*Make(one, RecordLevel::kFull));
  WriteSmallRun(*Make(two, RecordLevel::kFull));
  for (const auto& entry : std::filesystem::directory_iterator(one)) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(Text(Concat(one, "/", name)), Text(Concat(two, "/", name))) << name;
  }
}

TEST(RunWriterTest, WritesNoMoreThanItsLevel) {
  const std::string metrics = Fresh("metrics"), decisions = Fresh("decisions");
  WriteSmallRun(*Make(metrics, RecordLevel::kMetrics));
  EXPECT_FALSE(std::filesystem::exists(metrics + "/decisions.jsonl"));
  WriteSmallRun(*Make(decisions, RecordLevel::kDecisions));
  EXPECT_TRUE(std::filesystem::exists(decisions + "/decisions.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(decisions + "/trace.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(decisions + "/events.jsonl"));
}

TEST(RunWriterTest, RefusesADirectoryThatHoldsARun) {
  const std::string directory = Fresh("taken");
  WriteSmallRun(*Make(directory, RecordLevel::kFull));
  const std::string before = Text(directory + "/metrics.jsonl");
  const auto again =
      RunWriter::Create(directory, Settings(), {"again", "sim"}, RecordLevel::kMetrics);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().message(),
            directory + ": already holds a run (name another directory, or remove this one)");
  EXPECT_EQ(Text(directory + "/metrics.jsonl"), before);
}

TEST(RunWriterTest, TakesAnEmptyDirectoryAndNeedsItsParent) {
  const std::string directory = Fresh("empty");
  std::filesystem::create_directory(directory);
  WriteSmallRun(*Make(directory, RecordLevel::kMetrics));
  EXPECT_FALSE(RunWriter::Create(Fresh("no_parent") + "/run", Settings(), {"a", "sim"},
                                 RecordLevel::kMetrics)
                   .ok());
}

TEST(RunWriterTest, ManyLinesReachTheFileWholeAndInOrder) {
  const std::string directory = Fresh("many");
  const auto writer = Make(directory, RecordLevel::kMetrics);
  for (int step = 0; step < 50000; ++step) {
    ASSERT_TRUE(writer->WriteMetrics({{"step", step}, {"time", step / 3.0}}).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  std::istringstream lines(Text(directory + "/metrics.jsonl"));
  std::string line;
  int64_t num_lines = 0;
  for (; std::getline(lines, line); ++num_lines) {
    ASSERT_EQ(line.find("{\"step\":" + std::to_string(num_lines) + ","), 0u);
    ASSERT_EQ(line.back(), '}');
  }
  EXPECT_EQ(num_lines, 50000);
}

TEST(RunWriterTest, EvaluationsHaveAFileFromTheFirstOneOn) {
  const std::string directory = Fresh("evaluations");
  const auto writer = Make(directory, RecordLevel::kMetrics);
  EXPECT_FALSE(std::filesystem::exists(directory + "/eval.jsonl"));
  ASSERT_TRUE(
      writer->WriteEvaluation(PolicyVersion(0), Seconds(0), {{"eval/sums/mean@4", 0.25}}).ok());
  ASSERT_TRUE(
      writer->WriteEvaluation(PolicyVersion(50), Seconds(7.5), {{"eval/sums/mean@4", 0.5}}).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Text(directory + "/eval.jsonl"), R"({"step":0,"time":0,"eval/sums/mean@4":0.25}
{"step":50,"time":7.5,"eval/sums/mean@4":0.5}
)");
  EXPECT_FALSE(std::filesystem::exists(directory + "/events.out.tfevents.0.pace"));
}

TEST(RunWriterTest, ResponsesAndWarningsHaveFilesAtEveryLevel) {
  const std::string directory = Fresh("responses");
  const auto writer = Make(directory, RecordLevel::kMetrics);
  EXPECT_FALSE(std::filesystem::exists(directory + "/responses.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(directory + "/warnings.jsonl"));
  const ResponseRecord response = {.head = {.step = 3}, .turns = {{false, "a\nb"}}};
  const RunWarning warning = {WarningKind::kOverBudget, 3, "too much"};
  ASSERT_TRUE(writer->WriteResponse(response).ok());
  ASSERT_TRUE(writer->WriteWarning(warning).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Text(directory + "/responses.jsonl"), ResponseLine(response) + "\n");
  EXPECT_EQ(Text(directory + "/warnings.jsonl"), WarningLine(warning) + "\n");
}

TEST(RunWriterTest, AWatchableRunWritesEveryRowAtOnce) {
  for (const bool watchable : {false, true}) {
    const std::string directory = Fresh("watchable");
    Manifest manifest{"a run", "lab"};
    manifest.watchable = watchable;
    const auto writer = RunWriter::Create(directory, Settings(), manifest, RecordLevel::kMetrics);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->WriteMetrics({{"step", 0}, {"time", 1}}).ok());
    ASSERT_TRUE((*writer)->WriteEvaluation(PolicyVersion(0), Seconds(1), {{"x", 1}}).ok());
    EXPECT_EQ(Text(directory + "/metrics.jsonl"), watchable ? "{\"step\":0,\"time\":1}\n" : "");
    EXPECT_EQ(Text(directory + "/eval.jsonl"),
              watchable ? "{\"step\":0,\"time\":1,\"x\":1}\n" : "");
  }
}

TEST(RunWriterTest, TensorBoardHoldsEveryRow) {
  const std::string directory = Fresh("board");
  Manifest manifest{"a run", "lab"};
  manifest.tensorboard = true;
  const auto writer = RunWriter::Create(directory, Settings(), manifest, RecordLevel::kMetrics);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->WriteMetrics({{"step", 3}, {"time", 1}, {"train/loss", 2}}).ok());
  ASSERT_TRUE(
      (*writer)->WriteEvaluation(PolicyVersion(4), Seconds(1), {{"eval/a/mean@1", 1}}).ok());
  const std::string board = Text(directory + "/events.out.tfevents.0.pace");
  EXPECT_NE(board.find("train/loss"), std::string::npos);
  EXPECT_NE(board.find("eval/a/mean@1"), std::string::npos);
  // The step is the event's own, not a value.
  EXPECT_EQ(board.find("step"), std::string::npos);
}

TEST(RunWriterTest, TheManifestTellsTheMachineWhereItIsKnown) {
  const std::string directory = Fresh("machine");
  Manifest manifest{"a run", "runtime"};
  manifest.device = "cpu";
  manifest.torch = "2.13.0";
  manifest.threads = 2;
  manifest.determinism = "same steps, other times";
  manifest.start = 1700000000;
  ASSERT_TRUE(RunWriter::Create(directory, Settings(), manifest, RecordLevel::kMetrics).ok());
  const std::string text = Text(directory + "/manifest.json");
  EXPECT_NE(text.find(R"(},"device":"cpu","torch":"2.13.0","threads":2,)"
                      R"("determinism":"same steps, other times","start":1700000000,"record":)"),
            std::string::npos)
      << text;
}

TEST(RunWriterTest, NamesOfAnyKindStayOneLineOfJson) {
  const std::string directory = Fresh("names");
  const auto writer = Make(directory, RecordLevel::kMetrics);
  ASSERT_TRUE(
      writer->WriteEvaluation(PolicyVersion(0), Seconds(0), {{"a\"b\\c\nd\xff\u00e9", 1}}).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Text(directory + "/eval.jsonl"),
            "{\"step\":0,\"time\":0,\"a\\\"b\\\\c\\u000ad\uFFFD\u00e9\":1}\n");
}

TEST(RunWriterTest, AFullDiskIsAnErrorThatSticks) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  const std::string directory = Fresh("full");
  std::filesystem::create_directory(directory);
  std::filesystem::create_symlink("/dev/full", directory + "/metrics.jsonl");
  const auto writer = Make(directory, RecordLevel::kMetrics);
  ASSERT_TRUE(writer->WriteMetrics({{"step", 1}}).ok());
  EXPECT_EQ(writer->Finish().code(), StatusCode::kUnavailable);
  EXPECT_EQ(writer->WriteMetrics({{"step", 2}}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(writer->Flush().status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pace
