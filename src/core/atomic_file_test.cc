#include "core/atomic_file.h"

#include "core/file.h"
#include "core/test_files.h"

namespace pace {
namespace {

size_t NumFiles(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

TEST(AtomicFileTest, TheTargetChangesOnlyAtCommit) {
  const std::filesystem::path folder = ScratchFolder();
  const std::string path = WriteFile(folder / "file", "old");
  Result<AtomicFile> file = AtomicFile::Create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("new ").ok());
  ASSERT_TRUE(file->Append("text").ok());
  EXPECT_EQ(ReadFile(path), "old");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadFile(path), "new text");
  EXPECT_EQ(NumFiles(folder), 1u);
  EXPECT_FALSE(file->Append("late").ok());
  EXPECT_FALSE(file->Commit().ok());
}

TEST(AtomicFileTest, WithoutCommitNothingIsLeft) {
  const std::filesystem::path folder = ScratchFolder();
  const std::string path = WriteFile(folder / "file", "old");
  {
    Result<AtomicFile> file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append("new").ok());
  }
  EXPECT_EQ(ReadFile(path), "old");
  EXPECT_EQ(NumFiles(folder), 1u);
}

TEST(AtomicFileTest, AReaderThatHasTheOldFileMappedKeepsIt) {
  const std::string path = WriteFile(ScratchFolder() / "file", "old bytes");
  const Result<MappedFile> mapped = MappedFile::Open(path);
  Result<AtomicFile> file = AtomicFile::Create(path);
  ASSERT_TRUE(mapped.ok() && file.ok());
  ASSERT_TRUE(file->Append("n").ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(std::memcmp(mapped->bytes().data(), "old bytes", 9), 0);
}

TEST(AtomicFileTest, AFolderThatIsNotThereIsAnErrorThatNamesTheFile) {
  const std::string path = (ScratchFolder() / "missing" / "file").string();
  const Result<AtomicFile> file = AtomicFile::Create(path);
  ASSERT_FALSE(file.ok());
  EXPECT_TRUE(file.status().message().starts_with(path));
}

TEST(AtomicFileTest, ATargetThatCannotBeReplacedIsAnErrorAndLeavesNothing) {
  const std::filesystem::path folder = ScratchFolder();
  std::filesystem::create_directories(folder / "target" / "inside");
  Result<AtomicFile> file = AtomicFile::Create((folder / "target").string());
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->Commit().ok());
  EXPECT_EQ(NumFiles(folder), 1u);
}

TEST(AtomicFolderTest, AppearsWholeAfterCommit) {
  const auto scratch = ScratchFolder();
  const auto target = scratch / "a" / "b" / "model";
  Result<AtomicFolder> folder = AtomicFolder::Create(target.string() + "/");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  WriteFile(folder->path() / "config.json", "{}");
  EXPECT_FALSE(std::filesystem::exists(target));
  ASSERT_TRUE(folder->Commit().ok());
  EXPECT_EQ(ReadFile(target / "config.json"), "{}");
  EXPECT_EQ(NumFiles(target.parent_path()), 1u);
  EXPECT_FALSE(folder->Commit().ok());
}

TEST(AtomicFolderTest, LeavesNothingBehindWithoutCommit) {
  const auto scratch = ScratchFolder();
  {
    Result<AtomicFolder> folder = AtomicFolder::Create((scratch / "a" / "b" / "model").string());
    ASSERT_TRUE(folder.ok());
    const AtomicFolder moved = std::move(*folder);
    WriteFile(moved.path() / "weights", "x");
    EXPECT_TRUE(std::filesystem::exists(scratch / "a" / "b"));
  }
  EXPECT_EQ(NumFiles(scratch), 0u);
}

TEST(AtomicFolderTest, AnEmptyFolderGivesWayAndAFullOneDoesNot) {
  const auto scratch = ScratchFolder();
  std::filesystem::create_directory(scratch / "empty");
  Result<AtomicFolder> folder = AtomicFolder::Create((scratch / "empty").string());
  ASSERT_TRUE(folder.ok());
  WriteFile(folder->path() / "x", "1");
  ASSERT_TRUE(folder->Commit().ok());
  EXPECT_EQ(ReadFile(scratch / "empty" / "x"), "1");

  const Result<AtomicFolder> full = AtomicFolder::Create((scratch / "empty").string());
  EXPECT_NE(full.status().message().find("is there already, and is not empty"), std::string::npos);
  const Result<AtomicFolder> file = AtomicFolder::Create((scratch / "empty" / "x").string());
  EXPECT_NE(file.status().message().find("is not a folder"), std::string::npos);
  EXPECT_FALSE(AtomicFolder::Create(".").ok());
  EXPECT_FALSE(AtomicFolder::Create("").ok());
}

TEST(AtomicFolderTest, WhatCameInTheMeantimeIsKept) {
  const auto scratch = ScratchFolder();
  Result<AtomicFolder> folder = AtomicFolder::Create((scratch / "model").string());
  ASSERT_TRUE(folder.ok());
  std::filesystem::create_directory(scratch / "model");
  WriteFile(scratch / "model" / "theirs", "1");
  EXPECT_FALSE(folder->Commit().ok());
  EXPECT_EQ(ReadFile(scratch / "model" / "theirs"), "1");
}

}  // namespace
}  // namespace pace
