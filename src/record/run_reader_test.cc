#include "record/run_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "record/run_writer.h"

namespace pace {
namespace {

std::string WriteRun(const std::string& name, RecordLevel level) {
  const std::string directory = testing::TempDir() + "run_reader_" + name;
  std::filesystem::remove_all(directory);
  Settings settings;
  settings.run.seed = 5;
  settings.supply.threshold = 4;
  settings.admission.policy = AdmissionKind::kStaleK;
  auto writer = RunWriter::Create(directory, settings, {"my <run>", "sim"}, level);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  const Segment segment{PolicyVersion(1), 10};
  const std::vector<MemberSummary> members = {
      MemberSummary::Of({&segment, 1}, PolicyVersion(2), 0.5)};
  const GroupSummary group = GroupSummary::Of(GroupId(3), PolicyVersion(2), members, 0);
  StepPlan plan;
  plan.step = PolicyVersion(3);
  Decision decision;
  decision.verdict = Verdict::kReject;
  decision.reason = Reason::kOverBound;
  decision.waiting = 1;
  decision.generation = 1;
  decision.score = 2;
  decision.prefix_score = 0.5;
  EXPECT_TRUE((*writer)->WriteDecision(plan, group, decision, {100, 0.25, 2}).ok());
  decision.verdict = Verdict::kAdmit;
  decision.prefix_score.reset();
  EXPECT_TRUE((*writer)->WriteDecision(plan, group, decision, {100, 0.25, 2}).ok());
  EXPECT_TRUE((*writer)->WriteMetrics({{"step", 3}, {"time", 1.5}, {"pool/occupancy", 4}}).ok());
  EXPECT_TRUE((*writer)->WriteMetrics({{"step", 4}, {"time", 2.5}, {"extra", 1}}).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  return directory;
}

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

std::string ReadError(const std::string& directory) {
  const Result<RunData> run = ReadRun(directory);
  return run.ok() ? "ok" : run.status().message();
}

TEST(RunReaderTest, ReadsBackWhatRunWriterWrote) {
  const Result<RunData> run = ReadRun(WriteRun("back", RecordLevel::kDecisions));
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->manifest.name, "my <run>");
  EXPECT_EQ(run->manifest.method, "stale_k");
  EXPECT_EQ(run->manifest.seed, 5);
  EXPECT_FALSE(run->manifest.commit.empty());
  EXPECT_EQ(run->settings.supply.threshold, 4);
  ASSERT_EQ(run->decisions.size(), 2u);
  EXPECT_FALSE(run->decisions[0].trained());
  EXPECT_EQ(run->decisions[0].reason, Reason::kOverBound);
  EXPECT_EQ(run->decisions[0].prefix_score, 0.5f);
  EXPECT_EQ(run->decisions[0].length, 100);
  EXPECT_FALSE(run->decisions[1].prefix_score.has_value());
  EXPECT_TRUE(run->notes.empty());
  const MetricsTable& metrics = run->metrics;
  EXPECT_EQ(metrics.steps(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(metrics.At("pool/occupancy", 0), 4);
  EXPECT_FALSE(metrics.At("pool/occupancy", 1).has_value());
  EXPECT_FALSE(metrics.At("extra", 0).has_value());
  EXPECT_EQ(metrics.At("extra", 1), 1);
  EXPECT_EQ(metrics.Mean("time"), 2);
  EXPECT_EQ(metrics.Mean("time", 1), 2.5);
  EXPECT_FALSE(metrics.Mean("time", 2).has_value());
  EXPECT_EQ(metrics.Last("pool/occupancy"), 4);
  EXPECT_FALSE(metrics.Mean("nothing").has_value());
}

TEST(RunReaderTest, ARunWithoutDecisionsSaysSo) {
  const Result<RunData> run = ReadRun(WriteRun("metrics_only", RecordLevel::kMetrics));
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_FALSE(run->has_decisions);
}

TEST(RunReaderTest, ACutOffLastLineIsLeftOutAndNoted) {
  const std::string directory = WriteRun("cut", RecordLevel::kDecisions);
  Append(directory + "/metrics.jsonl", "{\"step\":5,\"time\":3,\"pool/occ");
  Append(directory + "/decisions.jsonl", "{\"step\":5,\"gro");
  const Result<RunData> run = ReadRun(directory);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->notes.size(), 2u);
  EXPECT_EQ(run->metrics.num_rows(), 2u);
  EXPECT_EQ(run->metrics.Last("time"), 2.5);
  EXPECT_EQ(run->decisions.size(), 2u);
}

std::string WriteTrainingRun(const std::string& name) {
  const std::string directory = testing::TempDir() + "run_reader_" + name;
  std::filesystem::remove_all(directory);
  Manifest manifest{"learns", "runtime"};
  manifest.device = "cpu";
  manifest.torch = "2.13.0";
  manifest.threads = 2;
  manifest.determinism = "none";
  manifest.start = 7;
  const auto writer = RunWriter::Create(directory, Settings(), manifest, RecordLevel::kMetrics);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  const auto evaluate = [&](int64_t version, double mean) {
    EXPECT_TRUE(
        (*writer)
            ->WriteEvaluation(PolicyVersion(version), Seconds(1), {{"eval/sums/mean@4", mean}})
            .ok());
  };
  evaluate(0, 0.25);
  EXPECT_TRUE((*writer)->WriteMetrics({{"step", 0}, {"time", 1}, {"train/reward", 0.5}}).ok());
  evaluate(1, 0.75);
  EXPECT_TRUE((*writer)->Finish().ok());
  return directory;
}

TEST(RunReaderTest, ReadsWhatATrainingRunAdds) {
  const Result<RunData> run = ReadRun(WriteTrainingRun("training"));
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->manifest.driver, "runtime");
  EXPECT_EQ(run->manifest.device, "cpu");
  EXPECT_EQ(run->manifest.torch, "2.13.0");
  EXPECT_EQ(run->manifest.threads, 2);
  EXPECT_EQ(run->manifest.determinism, "none");
  EXPECT_EQ(run->manifest.start, 7);
  EXPECT_EQ(run->evaluations.steps(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(run->evaluations.At("eval/sums/mean@4", 1), 0.75);
  EXPECT_FALSE(run->metrics.Has("eval/sums/mean@4"));
  EXPECT_EQ(ReadRun(WriteRun("no_eval", RecordLevel::kMetrics))->evaluations.num_rows(), 0u);
}

TEST(RunReaderTest, OfManyResponsesAFewAreReadAndOfEvaluationsTheLast) {
  const std::string directory = WriteRun("responses", RecordLevel::kMetrics);
  for (int64_t i = 0; i < 500; ++i) {
    ResponseRecord record;
    record.head = {.step = i / 10, .group = i, .reward = 0.01 * static_cast<double>(i)};
    record.head.reason = Reason::kUnderCutoff;
    record.turns = {{false, std::string(100'000, 'x')}};
    if (i % 100 == 99) {
      record.benchmark = "sums";
      record.head.reason.reset();
    }
    Append(directory + "/responses.jsonl", ResponseLine(record) + "\n");
  }
  for (int i = 0; i < 2000; ++i) {
    Append(directory + "/warnings.jsonl", WarningLine({.step = i, .text = "w"}) + "\n");
  }
  const Result<RunData> run = ReadRun(directory);
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_GE(run->responses.size(), 3u);
  EXPECT_LE(run->responses.size(), 5u);
  EXPECT_EQ(run->responses.front().head.group, 498);
  EXPECT_EQ(run->responses.front().picked.front(), "best");
  EXPECT_LT(run->responses.front().turns.front().text.size(), 2 * kMaxShownTextBytes);
  ASSERT_EQ(run->evaluated.size(), 1u);
  EXPECT_EQ(run->evaluated.front().head.step, 49);
  EXPECT_EQ(run->warnings.size(), kMaxWarnings);
}

TEST(RunReaderTest, DamagedResponsesAndWarningsAreNotedOrRefused) {
  for (const char* file : {"/responses.jsonl", "/warnings.jsonl"}) {
    const std::string directory = WriteRun("damaged_responses", RecordLevel::kMetrics);
    Append(directory + file, "{\"step\":1,");
    Result<RunData> run = ReadRun(directory);
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->notes.size(), 1u);
    Append(directory + file, "\n");
    EXPECT_EQ(ReadError(directory).find(directory + file + ":1: "), 0u) << ReadError(directory);
  }
}

TEST(RunReaderTest, DamagedEvaluationsAreNotedOrRefused) {
  const std::string directory = WriteTrainingRun("bad_eval");
  Append(directory + "/eval.jsonl", "{\"step\":2,\"time\":1,\"eval/s");
  const Result<RunData> run = ReadRun(directory);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->evaluations.num_rows(), 2u);
  ASSERT_EQ(run->notes.size(), 1u);
  EXPECT_EQ(run->notes[0].find("eval.jsonl ends within its last line"), 0u) << run->notes[0];
  Append(directory + "/eval.jsonl", "\n{\"step\":3}\n");
  EXPECT_EQ(ReadError(directory).find(directory + "/eval.jsonl:3: "), 0u) << ReadError(directory);
  const std::string again = WriteTrainingRun("eval_twice");
  Append(again + "/eval.jsonl", "{\"step\":1,\"time\":1}\n");
  EXPECT_EQ(ReadError(again), again + "/eval.jsonl:3: step = 1: must be >= 2 (steps increase)");
  std::filesystem::remove(again + "/eval.jsonl");
  std::filesystem::create_directory(again + "/eval.jsonl");
  EXPECT_NE(ReadError(again).find("eval.jsonl"), std::string::npos);
}

TEST(RunReaderTest, ErrorsNameFileLineFieldAndRule) {
  const std::string directory = WriteRun("bad_metrics", RecordLevel::kDecisions);
  Append(directory + "/metrics.jsonl", "{\"step\":4,\"time\":3}\n");
  EXPECT_EQ(ReadError(directory),
            directory + "/metrics.jsonl:3: step = 4: must be >= 5 (steps increase)");
  const std::string other = WriteRun("bad_decisions", RecordLevel::kDecisions);
  Append(other + "/decisions.jsonl", "{\"step\":4,\"verdict\":\"maybe\"}\n");
  EXPECT_EQ(ReadError(other),
            other + "/decisions.jsonl:3: verdict = maybe: must be admit or reject");
}

TEST(RunReaderTest, DirectoriesThatHoldNoRunAreErrors) {
  const std::string missing = testing::TempDir() + "run_reader_nothing_here";
  EXPECT_EQ(ReadError(missing),
            missing + "/manifest.json: cannot be opened (is this a run directory?)");
  const std::string directory = WriteRun("no_metrics", RecordLevel::kMetrics);
  std::filesystem::remove(directory + "/metrics.jsonl");
  EXPECT_NE(ReadError(directory).find("metrics.jsonl"), std::string::npos);
}

TEST(RunReaderTest, BadManifestsAreRefused) {
  EXPECT_EQ(ParseManifest(R"({"format": 2})").status().message(),
            "format = 2: must be <= 1 (this pace reads format 1)");
  EXPECT_EQ(ParseManifest("{}").status().message(), "missing key format");
  EXPECT_EQ(ParseManifest(R"({"format": 1, "name": 3})").status().message(),
            "name: must be a text in quotes");
  EXPECT_TRUE(ParseManifest(R"({"format": 1, "newer": {"threads": [1, 2]}})").ok());
  EXPECT_EQ(ParseManifest(R"({"format": 1, "start": -1})").status().message(),
            "start = -1: must be >= 0");
}

TEST(RunReaderTest, MetricsOfAnyNameAreKeptAndWrongValuesRefused) {
  MetricsTable table;
  EXPECT_TRUE(ParseMetricsLine(R"({"step":1,"train/loss":0.5,"b":null})", table).ok());
  EXPECT_EQ(table.At("train/loss", 0), 0.5);
  EXPECT_FALSE(table.Has("b"));
  EXPECT_EQ(ParseMetricsLine(R"({"step":2,"a":"x"})", table).message(),
            "a = \"x\": must be a finite number");
  EXPECT_EQ(ParseMetricsLine(R"({"a":1,"step":2})", table).message(),
            "a: must come after step, the first key");
  EXPECT_EQ(ParseMetricsLine("{}", table).message(), "missing key step");
  EXPECT_EQ(table.num_rows(), 1u);
}

TEST(RunReaderTest, DecisionsWithUnknownOrMissingKeysAreRefused) {
  EXPECT_EQ(ParseDecisionLine(R"({"step":1,"color":2})").status().message(), "color: unknown key");
  EXPECT_EQ(ParseDecisionLine(R"({"step":1,"verdict":"admit"})").status().message(),
            "missing key waiting");
  EXPECT_EQ(ParseDecisionLine(R"({"step":1,"waiting":null})").status().message(),
            "waiting = null: must be a finite number");
}

}  // namespace
}  // namespace pace
