#include "formats/atomic_folder.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace pace {
namespace {

size_t NumEntries(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
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
  EXPECT_EQ(NumEntries(target.parent_path()), 1u);
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
  EXPECT_EQ(NumEntries(scratch), 0u);
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
