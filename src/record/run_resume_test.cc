#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "record/run_reader.h"
#include "record/run_writer.h"

namespace pace {
namespace {

namespace fs = std::filesystem;
using Sizes = std::map<std::string, int64_t>;

constexpr char kBoard[] = "events.out.tfevents.0.pace";

std::string Fresh(const std::string& name) {
  const std::string path = testing::TempDir() + "run_resume_" + name;
  fs::remove_all(path);
  return path;
}

std::map<std::string, std::string> FilesOf(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    files[entry.path().filename().string()] = text.str();
  }
  return files;
}

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

std::unique_ptr<RunWriter> Begin(const std::string& directory,
                                 RecordLevel level = RecordLevel::kFull) {
  Manifest manifest{"a run", "lab"};
  manifest.tensorboard = true;
  manifest.watchable = true;
  auto writer = RunWriter::Create(directory, Settings(), manifest, level);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  return std::move(*writer);
}

// Everything a step of a training run writes.
void WriteStep(RunWriter& writer, int64_t step) {
  StepPlan plan;
  plan.step = PolicyVersion(step);
  const Segment segment{PolicyVersion(step), 10};
  const std::vector<MemberSummary> members = {
      MemberSummary::Of({&segment, 1}, PolicyVersion(step), 0.5)};
  const GroupSummary group = GroupSummary::Of(GroupId(step), PolicyVersion(step), members, 0);
  const TraceMember member{PolicyVersion(step), {&segment, 1}, 0.5};
  ASSERT_TRUE(writer.WriteTraceStep(plan, 1, PolicyVersion(step)).ok());
  ASSERT_TRUE(writer.WriteTraceDraw(GroupId(step), {{member}}, PolicyVersion(step + 1)).ok());
  ASSERT_TRUE(writer.WriteDecision(plan, group, Decision(), {100, 0.25, 2}).ok());
  ASSERT_TRUE(writer.WriteEvent(Concat(R"({"event":"step_finished","step":)", step, "}")).ok());
  const auto value = static_cast<double>(step);
  ASSERT_TRUE(
      writer.WriteMetrics({{"step", value}, {"time", value / 3}, {"train/reward", 0.5}}).ok());
  if (step % 2 == 1) {
    ASSERT_TRUE(writer.WriteResponse({.head = {.step = step}, .turns = {{false, "text"}}}).ok());
    ASSERT_TRUE(writer.WriteWarning({.step = step, .text = "a warning"}).ok());
    ASSERT_TRUE(writer
                    .WriteEvaluation(PolicyVersion(step), Seconds(value / 3),
                                     {{"eval/sums/mean@4", 0.25 * value}})
                    .ok());
  }
}

Result<std::unique_ptr<RunWriter>> ResumeAll(const std::string& directory, const Sizes& sizes) {
  return RunWriter::Resume(directory, RecordLevel::kFull, /*tensorboard=*/true, sizes);
}

TEST(RunResumeTest, AKilledRunGoesOnToTheBytesOfOneThatWasNot) {
  const std::string whole = Fresh("whole"), killed = Fresh("killed");
  for (const int64_t flushed : {0, 1, 2, 3}) {
    fs::remove_all(whole);
    fs::remove_all(killed);
    const auto through = Begin(whole);
    for (int64_t step = 0; step < 5; ++step) WriteStep(*through, step);
    ASSERT_TRUE(through->Finish().ok());

    auto first = Begin(killed);
    for (int64_t step = 0; step < flushed; ++step) WriteStep(*first, step);
    const Result<Sizes> sizes = first->Flush();
    ASSERT_TRUE(sizes.ok()) << sizes.status().message();
    for (int64_t step = flushed; step < 5; ++step) WriteStep(*first, step);
    first.reset();
    Append(killed + "/metrics.jsonl", "{\"step\":5,\"ti");
    Append(killed + "/eval.jsonl", "{\"st");
    Append(killed + "/trace.jsonl", "{");
    Append(killed + "/" + kBoard, "\x05");

    auto second = ResumeAll(killed, *sizes);
    ASSERT_TRUE(second.ok()) << second.status().message();
    for (int64_t step = flushed; step < 5; ++step) WriteStep(**second, step);
    ASSERT_TRUE((*second)->Finish().ok());
    EXPECT_EQ(FilesOf(killed), FilesOf(whole)) << "flushed before step " << flushed;
    ASSERT_TRUE(ReadRun(killed).ok());
  }
}

TEST(RunResumeTest, TheTraceGoesOnInTheMiddleOfAStep) {
  std::map<std::string, std::string> traces[2];
  for (const bool killed : {false, true}) {
    const std::string directory = Fresh("middle");
    auto writer = Begin(directory);
    const Segment segment{PolicyVersion(0), 10};
    const TraceMember member{PolicyVersion(0), {&segment, 1}, {}};
    StepPlan plan;
    plan.step = PolicyVersion(1);
    ASSERT_TRUE(writer->WriteTraceStep(plan, 2, PolicyVersion(0)).ok());
    ASSERT_TRUE(writer->WriteTraceDraw(GroupId(1), {{member}}, PolicyVersion(1)).ok());
    ASSERT_TRUE(writer->WriteTraceDraw(GroupId(2), {{member}}, PolicyVersion(1)).ok());
    if (killed) {
      const Sizes sizes = *writer->Flush();
      auto resumed = ResumeAll(directory, sizes);
      ASSERT_TRUE(resumed.ok()) << resumed.status().message();
      writer = std::move(*resumed);
    }
    ASSERT_TRUE(writer->WriteTraceDraw(GroupId(3), {{member}}, PolicyVersion(1)).ok());
    ASSERT_TRUE(writer->WriteTraceDraw(GroupId(4), {{member}}, std::nullopt).ok());
    ASSERT_TRUE(writer->Finish().ok());
    traces[killed ? 1 : 0] = FilesOf(directory);
  }
  EXPECT_EQ(traces[0], traces[1]);
}

TEST(RunResumeTest, FlushTellsTheSizeOfEveryFileSoFar) {
  const std::string directory = Fresh("sizes");
  const auto writer = Begin(directory);
  WriteStep(*writer, 0);
  Result<Sizes> sizes = writer->Flush();
  ASSERT_TRUE(sizes.ok());
  EXPECT_FALSE(sizes->contains("eval.jsonl"));
  WriteStep(*writer, 1);
  sizes = writer->Flush();
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(sizes->size(), 8u);
  for (const auto& [name, size] : *sizes) {
    EXPECT_EQ(fs::file_size(directory + "/" + name), static_cast<uint64_t>(size)) << name;
    EXPECT_GT(size, 0) << name;
  }
}

TEST(RunResumeTest, SizesStayRightAfterResume) {
  const std::string directory = Fresh("again");
  auto writer = Begin(directory);
  WriteStep(*writer, 0);
  Sizes sizes = *writer->Flush();
  for (int64_t step = 1; step < 4; ++step) {
    auto resumed = ResumeAll(directory, sizes);
    ASSERT_TRUE(resumed.ok()) << resumed.status().message();
    WriteStep(**resumed, step);
    sizes = *(*resumed)->Flush();
    for (const auto& [name, size] : sizes) {
      EXPECT_EQ(fs::file_size(directory + "/" + name), static_cast<uint64_t>(size)) << name;
    }
  }
}

TEST(RunResumeTest, AShorterOrMissingFileIsDataLossAndNothingIsTouched) {
  const std::string directory = Fresh("short");
  auto writer = Begin(directory);
  WriteStep(*writer, 0);
  WriteStep(*writer, 1);
  const Sizes sizes = *writer->Flush();
  writer.reset();
  Append(directory + "/metrics.jsonl", "more");
  const auto before = FilesOf(directory);
  for (const auto& [name, size] : sizes) {
    SCOPED_TRACE(name);
    const std::string path = directory + "/" + name;
    fs::resize_file(path, static_cast<uint64_t>(size - 1));
    Status status = ResumeAll(directory, sizes).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
    fs::remove(path);
    status = ResumeAll(directory, sizes).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
    Append(path, before.at(name));
    EXPECT_EQ(FilesOf(directory), before);
  }
}

TEST(RunResumeTest, SizesThatFitNoLineOrNameNoFileAreRefused) {
  const std::string directory = Fresh("refused");
  auto writer = Begin(directory);
  WriteStep(*writer, 0);
  Sizes sizes = *writer->Flush();
  writer.reset();
  const auto before = FilesOf(directory);
  const auto refused = [&](const std::string& name, int64_t size) {
    Sizes other = sizes;
    other[name] = size;
    const Status status = ResumeAll(directory, other).status();
    EXPECT_EQ(FilesOf(directory), before);
    return status;
  };
  EXPECT_EQ(refused("metrics.jsonl", 3).code(), StatusCode::kDataLoss);
  EXPECT_EQ(refused("metrics.jsonl", -1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("../other", 0).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("manifest.json", 0).code(), StatusCode::kInvalidArgument);
}

TEST(RunResumeTest, FilesWithoutASizeBeginAnew) {
  const std::string directory = Fresh("anew"), whole = Fresh("anew_whole");
  auto writer = Begin(directory);
  WriteStep(*writer, 0);
  WriteStep(*writer, 1);
  writer.reset();
  auto resumed = ResumeAll(directory, {});
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  EXPECT_FALSE(fs::exists(directory + "/eval.jsonl"));
  WriteStep(**resumed, 0);
  ASSERT_TRUE((*resumed)->Finish().ok());
  writer = Begin(whole);
  WriteStep(*writer, 0);
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(FilesOf(directory), FilesOf(whole));
}

TEST(RunResumeTest, ATraceBeginsWithItsRun) {
  const std::string directory = Fresh("level");
  auto writer = Begin(directory, RecordLevel::kMetrics);
  WriteStep(*writer, 0);
  const Sizes sizes = *writer->Flush();
  writer.reset();
  EXPECT_EQ(ResumeAll(directory, sizes).status().message(),
            "record.level = full: the run in " + directory +
                " was begun with metrics, and a trace must begin with its run");
  // A run that begins again may have any.
  EXPECT_TRUE(ResumeAll(directory, {}).ok());
  EXPECT_EQ(ReadManifest(directory)->record, "full");
  EXPECT_EQ(ResumeAll(Fresh("nothing"), {}).status().code(), StatusCode::kNotFound);
}

TEST(RunResumeTest, ALowerLevelLeavesTheOtherFilesAsTheyAre) {
  const std::string directory = Fresh("lower");
  auto writer = Begin(directory);
  WriteStep(*writer, 0);
  const Sizes sizes = *writer->Flush();
  writer.reset();
  const auto before = FilesOf(directory);
  auto resumed = RunWriter::Resume(directory, RecordLevel::kMetrics, true, sizes);
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  WriteStep(**resumed, 1);
  const Sizes later = *(*resumed)->Flush();
  ASSERT_TRUE((*resumed)->Finish().ok());
  EXPECT_EQ(ReadManifest(directory)->record, "metrics");
  for (const char* name : {"events.jsonl", "trace.jsonl", "decisions.jsonl"}) {
    EXPECT_EQ(later.at(name), sizes.at(name)) << name;
  }
  // And another resume does not take them for files that were begun later.
  ASSERT_TRUE(RunWriter::Resume(directory, RecordLevel::kMetrics, true, later).ok());
  auto after = FilesOf(directory);
  for (const char* name : {"events.jsonl", "trace.jsonl", "decisions.jsonl"}) {
    EXPECT_EQ(after[name], before.at(name)) << name;
  }
}

TEST(RunResumeTest, EveryStepCanBeReadWhileTheRunIsAlive) {
  const std::string directory = Fresh("alive");
  const auto writer = Begin(directory);
  for (int64_t step = 0; step < 3; ++step) {
    WriteStep(*writer, step);
    const auto files = FilesOf(directory);
    for (const char* name : {"events.jsonl", "decisions.jsonl", "metrics.jsonl"}) {
      const std::string& text = files.at(name);
      EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), step + 1) << name;
    }
    const Result<RunData> run = ReadRun(directory);
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->decisions.size(), static_cast<size_t>(step + 1));
  }
}

// Files of so few bytes that every second step or so begins another part.
constexpr int64_t kSmallPart = 400;

std::unique_ptr<RunWriter> BeginInParts(const std::string& directory) {
  Manifest manifest{"a run", "lab"};
  manifest.tensorboard = true;
  manifest.watchable = true;
  manifest.max_file_bytes = kSmallPart;
  auto writer = RunWriter::Create(directory, Settings(), manifest, RecordLevel::kFull);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  return std::move(*writer);
}

TEST(RunResumeTest, ALongRecordIsWrittenInPartsAndReadAsOne) {
  const std::string whole = Fresh("one_part"), parts = Fresh("parts");
  const auto one = Begin(whole);
  const auto several = BeginInParts(parts);
  for (int64_t step = 0; step < 8; ++step) {
    WriteStep(*one, step);
    WriteStep(*several, step);
  }
  ASSERT_TRUE(one->Finish().ok());
  ASSERT_TRUE(several->Finish().ok());
  const auto files = FilesOf(parts);
  EXPECT_TRUE(files.contains("decisions.jsonl.2"));
  std::string joined = files.at("decisions.jsonl");
  for (int part = 1; files.contains(Concat("decisions.jsonl.", part)); ++part) {
    const std::string& text = files.at(Concat("decisions.jsonl.", part));
    EXPECT_LT(text.size(), 2 * kSmallPart);
    joined += text;
  }
  EXPECT_EQ(joined, FilesOf(whole).at("decisions.jsonl"));
  const Result<RunData> run = ReadRun(parts);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->decisions.size(), 8U);
  EXPECT_EQ(run->metrics.num_rows(), 8U);
}

TEST(RunResumeTest, AKilledRunInPartsGoesOnToTheBytesOfOneThatWasNot) {
  const std::string whole = Fresh("whole_parts"), killed = Fresh("killed_parts");
  const auto through = BeginInParts(whole);
  for (int64_t step = 0; step < 8; ++step) WriteStep(*through, step);
  ASSERT_TRUE(through->Finish().ok());
  for (const int64_t flushed : {0, 1, 5}) {
    fs::remove_all(killed);
    auto first = BeginInParts(killed);
    for (int64_t step = 0; step < flushed; ++step) WriteStep(*first, step);
    const Result<Sizes> sizes = first->Flush();
    ASSERT_TRUE(sizes.ok()) << sizes.status().message();
    for (int64_t step = flushed; step < 7; ++step) WriteStep(*first, step);
    first.reset();
    auto second = RunWriter::Resume(killed, RecordLevel::kFull, true, *sizes, kSmallPart);
    ASSERT_TRUE(second.ok()) << second.status().message();
    for (int64_t step = flushed; step < 8; ++step) WriteStep(**second, step);
    ASSERT_TRUE((*second)->Finish().ok());
    EXPECT_EQ(FilesOf(killed), FilesOf(whole)) << "flushed before step " << flushed;
  }
}

TEST(RunResumeTest, ATensorBoardFileIsNamedByTheRunsStart) {
  const std::string directory = Fresh("start");
  Manifest manifest{"a run", "runtime"};
  manifest.tensorboard = true;
  manifest.start = 1700000000;
  auto writer = RunWriter::Create(directory, Settings(), manifest, RecordLevel::kMetrics);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->WriteMetrics({{"step", 0}, {"time", 1}, {"x", 2}}).ok());
  const Sizes sizes = *(*writer)->Flush();
  EXPECT_TRUE(sizes.contains("events.out.tfevents.1700000000.pace"));
  writer->reset();
  const auto resumed = RunWriter::Resume(directory, RecordLevel::kMetrics, true, sizes);
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  ASSERT_TRUE((*resumed)->WriteMetrics({{"step", 1}, {"time", 2}, {"x", 2}}).ok());
  EXPECT_GT((*resumed)->Flush()->at("events.out.tfevents.1700000000.pace"),
            sizes.at("events.out.tfevents.1700000000.pace"));
}

}  // namespace
}  // namespace pace
