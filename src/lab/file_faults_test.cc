// A training run on a disk that fails: whichever write or flush fails, the run ends with one
// line that names the file, and goes on from its newest checkpoint as if nothing had happened.
//
// All files are in memory, so a file that does not go through core/file.h fails here too.
// PACE_LONG_TESTS=1 tries every write and every flush; otherwise a sample of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/fake_files.h"
#include "execution/checkpoint.h"
#include "execution/small_run.h"
#include "lab/lab.h"
#include "record/run_files.h"
#include "record/run_writer.h"

namespace pace {
namespace {

constexpr char kRun[] = "/run";
constexpr char kCheckpoints[] = "/run/checkpoints";
constexpr int64_t kSampled = 12;

Settings FaultSettings() {
  return SmallSettings({"run.num_steps=3", "run.checkpoint_every=1", "run.evaluate_every=2",
                        "checkpoint.keep=0", "record.responses=sample"});
}

// As `pace train` writes a run.
Status Train(Files& files, const Settings& settings, const Policy& policy) {
  const ScopedFiles scoped(files);
  PACE_ASSIGN_OR_RETURN(
      const auto writer,
      RunWriter::Create(
          kRun, settings,
          {.name = "effective", .driver = "lab", .tensorboard = true, .watchable = true},
          RecordLevel::kFull));
  const Status status =
      RunLab(settings, policy, {.writer = writer.get(), .checkpoints = kCheckpoints}).status();
  const Status finished = writer->Finish();
  return status.ok() ? finished : status;
}

// As `pace train --resume` goes on with it. No checkpoint may be damaged.
Status Resume(Files& files, const Settings& settings, const Policy& policy) {
  const ScopedFiles scoped(files);
  if (!files.Exists(std::string(kRun) + "/manifest.json")) return Train(files, settings, policy);
  std::string notes;
  PACE_ASSIGN_OR_RETURN(auto checkpoint,
                        FindCheckpoint(kCheckpoints, ResumeFrom::kNewest,
                                       [&notes](const std::string& note) { notes += note; }));
  if (!notes.empty()) return DataLoss(notes);
  const std::string newest = NewestCheckpointFolder(kCheckpoints);
  if (checkpoint.has_value() && checkpoint->folder != newest) {
    return DataLoss(newest, ": is not the one that is resumed");
  }
  PACE_ASSIGN_OR_RETURN(
      const auto writer,
      RunWriter::Resume(kRun, RecordLevel::kFull, /*tensorboard=*/true,
                        checkpoint.has_value() ? checkpoint->run.record_sizes : FileSizes()));
  RunSetup setup = {.writer = writer.get(), .checkpoints = kCheckpoints};
  setup.resume = checkpoint.has_value();
  setup.loaded = checkpoint.has_value() ? &*checkpoint : nullptr;
  PACE_RETURN_IF_ERROR(RunLab(settings, policy, setup).status());
  return writer->Finish();
}

// Every file of the run. A resumed run's events say that it was resumed.
std::map<std::string, std::string> ContentsOf(Files& files, const std::string& folder) {
  const ScopedFiles scoped(files);
  std::map<std::string, std::string> contents;
  const Result<std::vector<std::string>> names = files.List(folder);
  EXPECT_TRUE(names.ok()) << names.status().message();
  for (const std::string& name : *names) {
    const std::string path = folder + "/" + name;
    if (files.Stat(path).kind == FileKind::kFolder) {
      contents.merge(ContentsOf(files, path));
    } else if (name != "events.jsonl" && name != "run.json" && name != "files.json") {
      contents.emplace(path, *ReadFile(path, size_t{1} << 30));
    }
  }
  return contents;
}

class FileFaultsTest : public testing::TestWithParam<DiskFault::Kind> {};

TEST_P(FileFaultsTest, ARunWhoseDiskFailsSaysSoAndGoesOnFromItsNewestCheckpoint) {
  const Settings settings = FaultSettings();
  const Policy policy = SmallPolicy(settings);
  MemoryFiles whole;
  FaultyFiles counter(whole, {});
  const Status trained = Train(counter, settings, policy);
  ASSERT_TRUE(trained.ok()) << trained.message();
  const std::map<std::string, std::string> expected = ContentsOf(whole, kRun);
  ASSERT_TRUE(expected.contains("/run/checkpoints/step-000003/model.safetensors"));
  ASSERT_TRUE(expected.contains("/run/metrics.jsonl"));

  const bool flushes = GetParam() == DiskFault::kFailedFlush;
  const int64_t count = flushes ? counter.num_flushes() : counter.num_writes();
  const bool all = std::getenv("PACE_LONG_TESTS") != nullptr;
  ASSERT_GT(count, kSampled);
  for (int64_t i = 0; i < (all ? count : kSampled); ++i) {
    // A sample holds the first and the last.
    const int64_t at = all ? i : i * (count - 1) / (kSampled - 1);
    SCOPED_TRACE(testing::Message() << (flushes ? "flush " : "write ") << at << " of " << count);
    MemoryFiles memory;
    FaultyFiles disk(memory, {.kind = GetParam(), .at = at});
    const Status status = Train(disk, settings, policy);
    ASSERT_FALSE(disk.failed_path().empty());
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(disk.failed_path()), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    const Status resumed = Resume(memory, settings, policy);
    ASSERT_TRUE(resumed.ok()) << resumed.message();
    const std::map<std::string, std::string> actual = ContentsOf(memory, kRun);
    for (const auto& [path, content] : expected) {
      ASSERT_TRUE(actual.contains(path)) << path;
      EXPECT_TRUE(actual.at(path) == content) << path << ": has other bytes";
    }
    EXPECT_EQ(actual.size(), expected.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FileFaultsTest,
                         testing::Values(DiskFault::kFullDisk, DiskFault::kTornWrite,
                                         DiskFault::kFailedFlush));

}  // namespace
}  // namespace pace
