#include "terminal/line_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pace {
namespace {

std::filesystem::path Scratch(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(PACE_BINARY_DIR) / "cli_scratch";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder / name);
  return folder / name;
}

LineInput Open(const std::filesystem::path& path) {
  Result<LineInput> input = LineInput::Open(path.string());
  EXPECT_TRUE(input.ok()) << input.status().message();
  return std::move(input).value();
}

TEST(LineInputTest, GivesEveryLineAndTheLastWithoutItsEnd) {
  const auto path = Scratch("lines");
  const std::string longer(200'000, 'x');
  std::ofstream(path, std::ios::binary) << "\xEF\xBB\xBF" << "a\r\n\n" << longer << "\nlast";
  LineInput input = Open(path);
  std::string line;
  for (const std::string& expected :
       {std::string("a"), std::string(), longer, std::string("last")}) {
    EXPECT_EQ(*input.Next(true, line), LineInput::Read::kLine);
    EXPECT_EQ(line, expected);
  }
  EXPECT_EQ(input.where(), path.string() + ":4");
  EXPECT_EQ(*input.Next(true, line), LineInput::Read::kEnd);
  EXPECT_EQ(*input.Next(false, line), LineInput::Read::kEnd);
}

TEST(LineInputTest, DoesNotWaitUnlessToldTo) {
  const auto path = Scratch("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  // Reading and writing, so that opening the other end does not block.
  std::fstream writer(path, std::ios::in | std::ios::out);
  LineInput input = Open(path);
  std::string line;
  EXPECT_EQ(*input.Next(false, line), LineInput::Read::kNotYet);
  writer << "half" << std::flush;
  EXPECT_EQ(*input.Next(false, line), LineInput::Read::kNotYet);
  writer << " and half\nmore" << std::flush;
  EXPECT_EQ(*input.Next(true, line), LineInput::Read::kLine);
  EXPECT_EQ(line, "half and half");
  EXPECT_EQ(*input.Next(false, line), LineInput::Read::kNotYet);
}

TEST(LineInputTest, AWaitEndsWhenItIsWoken) {
  const auto path = Scratch("pipe");
  const auto waker_path = Scratch("waker");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(waker_path.c_str(), 0600), 0);
  std::fstream writer(path, std::ios::in | std::ios::out);
  const int waker = ::open(waker_path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::write(waker, "x", 1), 1);
  LineInput input = Open(path);
  input.set_wake(waker);
  std::string line;
  EXPECT_EQ(*input.Next(true, line), LineInput::Read::kNotYet);
  ::close(waker);
}

TEST(LineInputTest, AFileThatIsNotThereIsAnError) {
  EXPECT_FALSE(LineInput::Open("no/such/file").ok());
  LineInput folder = Open(std::filesystem::path(PACE_BINARY_DIR));
  std::string line;
  EXPECT_FALSE(folder.Next(true, line).ok());
}

}  // namespace
}  // namespace pace
