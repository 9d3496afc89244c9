// A run's records on a disk that fails: every write and every flush in turn.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/fake_files.h"
#include "record/run_files.h"
#include "record/run_writer.h"

namespace pace {
namespace {

constexpr char kRun[] = "/run";
constexpr int64_t kSteps = 4;

// What each step writes; then a flush, as a checkpoint asks for it.
Status WriteStep(RunWriter& writer, int64_t step, FileSizes& flushed) {
  const StepPlan plan = {.step = PolicyVersion(step)};
  PACE_RETURN_IF_ERROR(writer.WriteTraceStep(plan, 1, std::nullopt));
  PACE_RETURN_IF_ERROR(writer.WriteEvent(R"({"event":"stop_requested"})"));
  PACE_RETURN_IF_ERROR(writer.WriteRollout({.member = step, .reason = "stop_token"}));
  PACE_RETURN_IF_ERROR(writer.WriteWarning({.step = step, .text = "watch out"}));
  PACE_RETURN_IF_ERROR(writer.WriteResponse({.head = {.step = step}, .turns = {{false, "1"}}}));
  PACE_RETURN_IF_ERROR(writer.WriteMetrics({{"step", static_cast<double>(step)}, {"time", 1}}));
  PACE_RETURN_IF_ERROR(writer.WriteEvaluation(PolicyVersion(step), Seconds(1), {{"mean", 1}}));
  PACE_RETURN_IF_ERROR(writer.WriteSnapshot(PolicyVersion(step), "{}\n"));
  PACE_ASSIGN_OR_RETURN(flushed, writer.Flush());
  return Status::Ok();
}

// Runs from step `next` on. `next` and `flushed` tell where it would be resumed.
Status WriteRun(Files& files, int64_t& next, FileSizes& flushed) {
  const ScopedFiles scoped(files);
  const bool resumes = files.Exists(std::string(kRun) + "/manifest.json");
  PACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<RunWriter> writer,
      resumes ? RunWriter::Resume(kRun, RecordLevel::kFull, /*tensorboard=*/true, flushed)
              : RunWriter::Create(
                    kRun, Settings(),
                    {.name = "pace", .driver = "lab", .tensorboard = true, .watchable = true},
                    RecordLevel::kFull));
  for (; next < kSteps; ++next) PACE_RETURN_IF_ERROR(WriteStep(*writer, next, flushed));
  return writer->Finish();
}

std::map<std::string, std::string> ContentsOf(Files& files) {
  const ScopedFiles scoped(files);
  std::map<std::string, std::string> contents;
  const Result<std::vector<std::string>> names = files.List(kRun);
  for (const std::string& name : *names) {
    const std::string path = std::string(kRun) + "/" + name;
    if (files.Stat(path).kind != FileKind::kRegular) continue;
    contents.emplace(name, *ReadFile(path, 1 << 20));
  }
  return contents;
}

TEST(RunFaultsTest, WhicheverWriteFailsIsNamedAndTheRunGoesOnToTheSameBytes) {
  MemoryFiles whole;
  FaultyFiles counter(whole, {});
  int64_t next = 0;
  FileSizes flushed;
  const Status wrote = WriteRun(counter, next, flushed);
  ASSERT_TRUE(wrote.ok()) << wrote.message();
  const std::map<std::string, std::string> expected = ContentsOf(whole);
  ASSERT_EQ(expected.size(), 11u);  // eight records, TensorBoard, config and manifest
  for (const auto kind : {DiskFault::kFullDisk, DiskFault::kTornWrite, DiskFault::kFailedFlush}) {
    const bool flushes = kind == DiskFault::kFailedFlush;
    const int64_t count = flushes ? counter.num_flushes() : counter.num_writes();
    for (int64_t at = 0; at < count; ++at) {
      SCOPED_TRACE(testing::Message() << (flushes ? "flush " : "write ") << at);
      MemoryFiles memory;
      FaultyFiles disk(memory, {.kind = kind, .at = at});
      next = 0;
      flushed.clear();
      const Status status = WriteRun(disk, next, flushed);
      EXPECT_EQ(status.code(), StatusCode::kUnavailable);
      EXPECT_TRUE(status.message().starts_with(disk.failed_path() + ": ")) << status.message();
      EXPECT_EQ(status.message().find('\n'), std::string::npos);
      const Status resumed = WriteRun(memory, next, flushed);
      ASSERT_TRUE(resumed.ok()) << resumed.message();
      EXPECT_EQ(ContentsOf(memory), expected);
    }
  }
}

}  // namespace
}  // namespace pace
