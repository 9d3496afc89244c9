#include "formats/atomic_file.h"

#include "formats/mapped_file.h"
#include "formats/test_files.h"

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

}  // namespace
}  // namespace pace
