#include "core/file.h"

#include <sys/stat.h>

#include <utility>

#include "core/test_files.h"

namespace pace {
namespace {

TEST(MappedFileTest, HoldsTheBytesOfTheFileAndKeepsThemWhenMoved) {
  Result<MappedFile> file = MappedFile::Open(WriteFile(ScratchFolder() / "file", "some bytes"));
  ASSERT_TRUE(file.ok());
  const std::byte* const address = file->bytes().data();
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "some bytes", 10), 0);
  EXPECT_EQ(moved.bytes().size(), 10u);
}

TEST(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  const Result<MappedFile> file = MappedFile::Open(WriteFile(ScratchFolder() / "file", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFileTest, WhatIsNotARegularFileIsAnErrorThatNamesIt) {
  const std::filesystem::path folder = ScratchFolder();
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder.string(), pipe, (folder / "missing").string()}) {
    const Result<MappedFile> file = MappedFile::Open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_TRUE(file.status().message().starts_with(path)) << file.status().message();
  }
  EXPECT_EQ(MappedFile::Open((folder / "missing").string()).status().code(), StatusCode::kNotFound);
}

TEST(OsFilesTest, ErrorsNameTheFileAndTheReason) {
  const std::filesystem::path folder = ScratchFolder();
  const std::string gone = (folder / "gone").string();
  EXPECT_EQ(ReadFile(gone, 10).status().message(),
            gone + ": cannot be read: No such file or directory");
  EXPECT_EQ(ReadFile(folder.string(), 10).status().message(),
            folder.string() + ": cannot be read: Is a directory");
  const std::string path = WriteFile(folder / "file", "twelve bytes");
  EXPECT_EQ(ReadFile(path, 12).value(), "twelve bytes");
  EXPECT_EQ(ReadFile(path, 11).status().message(), path + ": larger than 11 bytes");
  const auto again = OsFiles().OpenToWrite(path, WriteMode::kNew);
  EXPECT_EQ(again.status().message(), path + ": cannot be created: File exists");
  EXPECT_EQ(CreateFolders(path + "/below").message(),
            path + "/below: cannot be created: Not a directory");
  EXPECT_EQ(OsFiles().List(gone).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(OsFiles().Remove(gone).ok());
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  const auto full = OsFiles().OpenToWrite("/dev/full", WriteMode::kAppend);
  EXPECT_EQ((*full)->Append("x").message(),
            "/dev/full: cannot be written: No space left on device (is the disk full?)");
}

TEST(OsFilesTest, FilesAreReplacedContinuedCutAndRemoved) {
  const std::filesystem::path folder = ScratchFolder();
  const std::string path = (folder / "a" / "b" / "file").string();
  ASSERT_TRUE(CreateFolders(FolderOf(path)).ok());
  for (const WriteMode mode : {WriteMode::kNew, WriteMode::kReplace, WriteMode::kAppend}) {
    auto file = OsFiles().OpenToWrite(path, mode);
    ASSERT_TRUE(file.ok() && (*file)->Append("text").ok() && (*file)->FlushToDisk().ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  EXPECT_EQ(ReadFile(path), "texttext");
  ASSERT_TRUE(OsFiles().Truncate(path, 5).ok());
  EXPECT_EQ(OsFiles().Stat(path).num_bytes, 5);
  EXPECT_EQ(*OsFiles().List(FolderOf(path)), std::vector<std::string>{"file"});
  // A link is removed, not what it leads to.
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  ASSERT_TRUE(RemoveTree((folder / "link").string()).ok());
  EXPECT_EQ(ReadFile(path), "textt");
  ASSERT_TRUE(RemoveTree((folder / "a").string()).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(OsFilesTest, FoldersOfPaths) {
  EXPECT_EQ(FolderOf("a/b"), "a");
  EXPECT_EQ(FolderOf("a//b/"), "a");
  EXPECT_EQ(FolderOf("a"), ".");
  EXPECT_EQ(FolderOf("a/"), ".");
  EXPECT_EQ(FolderOf("/a"), "/");
  EXPECT_EQ(FolderOf("/"), "/");
}

}  // namespace
}  // namespace pace
