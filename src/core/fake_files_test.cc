#include "core/fake_files.h"

#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "core/line_reader.h"

namespace pace {
namespace {

std::string TextOf(Files& files, const std::string& path) {
  const ScopedFiles scoped(files);
  const Result<std::string> text = ReadFile(path, 1 << 20);
  return text.ok() ? *text : text.status().message();
}

Status Write(Files& files, const std::string& path, std::string_view text) {
  const ScopedFiles scoped(files);
  return WriteFileAtomically(path, text);
}

TEST(MemoryFilesTest, FilesAreReadWrittenRenamedAndListed) {
  MemoryFiles files;
  const ScopedFiles scoped(files);
  ASSERT_TRUE(CreateFolders("/run/a").ok());
  ASSERT_TRUE(WriteFileAtomically("/run/a/config", "one").ok());
  ASSERT_TRUE(WriteFileAtomically("/run/a/config", "two").ok());
  EXPECT_EQ(TextOf(files, "/run/a/config"), "two");
  EXPECT_EQ(*files.List("/run/a"), std::vector<std::string>{"config"});
  const Result<MappedFile> before = MappedFile::Open("/run/a/config");
  auto more = files.OpenToWrite("/run/a/config", WriteMode::kAppend, "");
  ASSERT_TRUE(before.ok() && more.ok());
  ASSERT_TRUE((*more)->Append("!").ok());
  EXPECT_EQ(before->text(), "two");
  EXPECT_EQ(files.Stat("/run/a/config").num_bytes, 4);
  ASSERT_TRUE(files.Rename("/run/a", "/run/b").ok());
  EXPECT_EQ(TextOf(files, "/run//b/config"), "two!");
  EXPECT_FALSE(files.Remove("/run/b").ok());
  ASSERT_TRUE(RemoveTree("/run").ok());
  EXPECT_FALSE(files.Exists("/run"));
}

TEST(MemoryFilesTest, WhatADiskRefusesIsRefused) {
  MemoryFiles files;
  EXPECT_EQ(files.OpenToRead("gone").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(files.OpenToWrite("gone/file", WriteMode::kNew, "").ok());
  ASSERT_TRUE(files.CreateFolder("a").ok() && files.CreateFolder("b").ok());
  ASSERT_TRUE(Write(files, "a/file", "1").ok() && Write(files, "b/file", "2").ok());
  EXPECT_FALSE(files.OpenToWrite("a/file", WriteMode::kNew, "").ok());
  EXPECT_FALSE(files.OpenToRead("a").ok());
  EXPECT_FALSE(files.Rename("a", "b").ok());
  ASSERT_TRUE(files.Exchange("a", "b").ok());
  EXPECT_EQ(TextOf(files, "a/file"), "2");
  EXPECT_EQ(TextOf(files, "b/file"), "1");
  EXPECT_FALSE(files.Exchange("a", "gone").ok());
  EXPECT_EQ(TextOf(files, "a/file"), "2");
}

TEST(MemoryFilesTest, AnAtomicFolderIsReplacedAtOneMoment) {
  MemoryFiles files;
  const ScopedFiles scoped(files);
  for (const char* const text : {"old", "new"}) {
    Result<AtomicFolder> folder =
        AtomicFolder::Create("runs/step", AtomicFolder::Existing::kReplace);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    ASSERT_TRUE(WriteFileAtomically(folder->path() / "file", text).ok());
    ASSERT_TRUE(folder->Commit().ok());
    EXPECT_EQ(TextOf(files, "runs/step/file"), text);
    EXPECT_EQ(files.List("runs")->size(), 1u);
  }
}

TEST(FaultyFilesTest, EveryWriteOfAnAtomicFileMayFailAndTheOldOneStays) {
  MemoryFiles files;
  ASSERT_TRUE(Write(files, "file", "old").ok());
  FaultyFiles counter(files, {});
  ASSERT_TRUE(Write(counter, "other", "text").ok());
  EXPECT_EQ(counter.num_writes(), 3);  // create, append, rename
  EXPECT_EQ(counter.num_flushes(), 2);
  for (const auto kind : {DiskFault::kFullDisk, DiskFault::kTornWrite, DiskFault::kFailedFlush}) {
    for (int64_t at = 0; at < (kind == DiskFault::kFailedFlush ? 1 : 3); ++at) {
      FaultyFiles disk(files, {.kind = kind, .at = at});
      const Status status = Write(disk, "file", "new text");
      EXPECT_TRUE(status.message().starts_with("file: ")) << status.message();
      EXPECT_EQ(disk.failed_path(), "file");
      EXPECT_EQ(TextOf(files, "file"), "old");
      EXPECT_EQ(files.List(".")->size(), 2u);
    }
  }
}

TEST(FaultyFilesTest, ATornWriteKeepsHalfAndAFullDiskNothing) {
  MemoryFiles files;
  FaultyFiles torn(files, {.kind = DiskFault::kTornWrite, .at = 1});
  auto file = torn.OpenToWrite("torn", WriteMode::kNew, "");
  EXPECT_FALSE((*file)->Append("abcdef").ok());
  EXPECT_TRUE((*file)->Append("ghi").ok());
  EXPECT_EQ(TextOf(files, "torn"), "abcghi");

  FaultyFiles full(files, {.kind = DiskFault::kFullDisk, .max_bytes = 4});
  file = full.OpenToWrite("full", WriteMode::kNew, "");
  EXPECT_TRUE((*file)->Append("abcd").ok());
  EXPECT_EQ((*file)->Append("e").message(),
            "full: cannot be written: No space left on device (is the disk full?)");
  EXPECT_FALSE((*file)->Append("f").ok());
  EXPECT_EQ(TextOf(files, "full"), "abcd");
}

TEST(FaultyFilesTest, AnAtomicFolderThatCannotBeExchangedIsReplacedAllTheSame) {
  for (int64_t failing = 0; failing < 2; ++failing) {
    MemoryFiles files;
    const auto replace = [](Files& disk, const std::string& text) -> Status {
      const ScopedFiles scoped(disk);
      PACE_ASSIGN_OR_RETURN(AtomicFolder folder,
                            AtomicFolder::Create("step", AtomicFolder::Existing::kReplace));
      PACE_RETURN_IF_ERROR(WriteFileAtomically(folder.path() / "file", text));
      return folder.Commit();
    };
    ASSERT_TRUE(replace(files, "old").ok());
    FaultyFiles counter(files, {});
    ASSERT_TRUE(replace(counter, "old").ok());
    // The exchange comes last; with a full disk the renames after it fail as well.
    const auto kind = failing == 0 ? DiskFault::kTornWrite : DiskFault::kFullDisk;
    FaultyFiles disk(files, {.kind = kind, .at = counter.num_writes() - 1});
    EXPECT_EQ(replace(disk, "new").ok(), failing == 0);
    EXPECT_EQ(TextOf(files, "step/file"), failing == 0 ? "new" : "old");
    EXPECT_EQ(files.List(".")->size(), 1u);
  }
}

}  // namespace
}  // namespace pace
