#include "sandbox/program_control.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace pace {
namespace {

class ProgramControlTest : public ::testing::Test {
 protected:
  ProgramControlTest() {
    Result<DescriptorPair> pair = MakeSocketPair(SOCK_STREAM);
    EXPECT_TRUE(pair.ok());
    control_.emplace(std::move(pair->first));
    other_ = std::move(pair->second);
  }
  static std::string Frame(char kind, const std::string& text) {
    const auto size = static_cast<uint32_t>(text.size());
    std::string frame(4, '\0');
    std::memcpy(frame.data(), &size, 4);
    return frame + kind + text;
  }
  void Send(const std::string& bytes) {
    EXPECT_EQ(::write(other_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  std::optional<ProgramControl> control_;
  FileDescriptor other_;
};

TEST_F(ProgramControlTest, FollowsAProgramFromStartToEnd) {
  EXPECT_TRUE(control_->Receive().ok());
  EXPECT_FALSE(control_->started());
  Send(Frame('s', ""));
  EXPECT_TRUE(control_->Receive().ok());
  EXPECT_TRUE(control_->started());
  Send(Frame('r', R"({"return_code": -9, "time": 0.5, "files": {"a": "00ff"}})"));
  EXPECT_TRUE(control_->Receive().ok());
  ASSERT_TRUE(control_->end().has_value());
  EXPECT_EQ(control_->end()->return_code, -9);
  EXPECT_EQ(control_->end()->files[0].content, std::string("\0\xff", 2));
  other_.Close();
  EXPECT_TRUE(control_->Receive().ok());
  EXPECT_TRUE(control_->closed());
}

TEST_F(ProgramControlTest, FramesMayComeInPieces) {
  for (const char c : Frame('e', "no memory")) {
    EXPECT_FALSE(control_->failure().has_value());
    Send(std::string(1, c));
    EXPECT_TRUE(control_->Receive().ok());
  }
  EXPECT_EQ(control_->failure(), "no memory");
}

TEST_F(ProgramControlTest, DescriptorsComeWithFrames) {
  const Result<FileDescriptor> file = SealedFile("x");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(SendDescriptors(other_.get(), Frame('p', ""), {file->get(), file->get()}).ok());
  EXPECT_TRUE(control_->Receive().ok());
  EXPECT_GE(control_->process(), 0);
}

TEST_F(ProgramControlTest, NonsenseIsRefused) {
  Send(Frame('x', ""));
  EXPECT_FALSE(control_->Receive().ok());
}

TEST_F(ProgramControlTest, AFrameIsBounded) {
  Send(std::string("\xff\xff\xff\x7f", 4) + "r");
  EXPECT_FALSE(control_->Receive().ok());
}

TEST(ProgramEndTest, IsChecked) {
  EXPECT_TRUE(ReadProgramEnd(R"({"return_code": 0, "time": 1, "files": {}})").ok());
  for (const char* text :
       {"", "{", R"({"return_code": 999})", R"({"time": -1})", R"({"files": {"a": "0"}})",
        R"({"files": {"a": "zz"}})", R"({"x": 1})"}) {
    EXPECT_FALSE(ReadProgramEnd(text).ok()) << text;
  }
}

TEST(ProgramRequestTextTest, IsJson) {
  EXPECT_EQ(ProgramRequestText({.code = "a\n\xff", .files = {{"f\"", "\x01"}}, .fetch = {"g"}}, 7),
            "{\"code\":\"a\\u000a\xEF\xBF\xBD\",\"memory_bytes\":7,\"files\":{\"f\\\"\":\"01\"},"
            "\"fetch\":[\"g\"]}");
}

TEST(SealedFileTest, CannotBeChanged) {
  const Result<FileDescriptor> file = SealedFile("content");
  ASSERT_TRUE(file.ok());
  char buffer[16] = {};
  EXPECT_EQ(::read(file->get(), buffer, sizeof(buffer)), 7);
  EXPECT_LT(::pwrite(file->get(), "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(file->get(), 100), 0);
}

}  // namespace
}  // namespace pace
