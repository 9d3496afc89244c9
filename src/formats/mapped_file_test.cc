#include "formats/mapped_file.h"

#include <sys/stat.h>

#include <utility>

#include "formats/test_files.h"

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

}  // namespace
}  // namespace pace
