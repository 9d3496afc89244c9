#include "core/line_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace pace {
namespace {

std::string FileOf(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "line_reader_" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::vector<std::string> AllLines(const std::string& path) {
  Result<LineReader> reader = LineReader::Open(path);
  std::vector<std::string> lines;
  while (true) {
    const Result<bool> more = reader->Next();
    if (!more.ok()) return {more.status().message()};
    if (!*more) return lines;
    lines.emplace_back(reader->line());
  }
}

using Lines = std::vector<std::string>;

TEST(LineReaderTest, HandsOutLinesWithoutTheirNewline) {
  EXPECT_EQ(AllLines(FileOf("plain", "a\nbc\n\nd\n")), (Lines{"a", "bc", "", "d"}));
  EXPECT_EQ(AllLines(FileOf("empty", "")), Lines{});
}

TEST(LineReaderTest, LinesLongerThanItsBufferComeWhole) {
  const std::string long_line(3'000'000, 'x');
  EXPECT_EQ(AllLines(FileOf("long", "a\n" + long_line + "\nb\n")), (Lines{"a", long_line, "b"}));
}

TEST(LineReaderTest, ALastLineWithoutNewlineIsMarked) {
  Result<LineReader> reader = LineReader::Open(FileOf("cut", "a\nb"));
  ASSERT_TRUE(*reader->Next());
  EXPECT_TRUE(reader->complete());
  ASSERT_TRUE(*reader->Next());
  EXPECT_EQ(reader->line(), "b");
  EXPECT_FALSE(reader->complete());
  EXPECT_EQ(reader->Locate(InvalidArgument("bad")).code(), StatusCode::kDataLoss);
  EXPECT_FALSE(*reader->Next());
}

TEST(LineReaderTest, AnEndlessLineIsAnErrorAndNotAnAllocation) {
  const std::string path = FileOf("huge", "a\n");
  std::filesystem::resize_file(path, LineReader::kMaxLineBytes + 4096);
  const Lines lines = AllLines(path);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], path + ":2: longer than 67108864 bytes (one JSON object per line)");
}

TEST(LineReaderTest, MissingFilesAndDirectoriesAreErrors) {
  EXPECT_EQ(LineReader::Open(testing::TempDir() + "no/such/file").status().code(),
            StatusCode::kNotFound);
  Result<LineReader> directory = LineReader::Open(testing::TempDir());
  EXPECT_FALSE(directory.ok() && directory->Next().ok());
}

}  // namespace
}  // namespace pace
