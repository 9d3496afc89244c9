#include "sandbox/program_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace pace {
namespace {

// Plays the first process of a program: a child that waits to be killed, and what it says.
class ProgramWatchTest : public ::testing::Test {
 protected:
  ProgramWatchTest() {
    child_ = ::fork();
    if (child_ == 0) {
      while (true) ::pause();
    }
    process_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    Result<DescriptorPair> control = MakeSocketPair(SOCK_STREAM);
    EXPECT_TRUE(control.ok());
    ours_ = std::move(control->first);
    theirs_ = std::move(control->second);
  }
  ~ProgramWatchTest() override {
    ::kill(child_, SIGKILL);
    int ignored = 0;
    ::waitpid(child_, &ignored, 0);
  }

  static std::string Frame(char kind, const std::string& text = "") {
    return std::string{static_cast<char>(text.size()), 0, 0, 0, kind} + text;
  }
  void Say(const std::string& frames) {
    EXPECT_TRUE(SendDescriptors(theirs_.get(), Frame('p') + frames, {process_.get()}).ok());
  }
  Result<ProgramResult> Watch() {
    Result<DescriptorPair> out = MakePipe();
    Result<DescriptorPair> error = MakePipe();
    EXPECT_TRUE(out.ok() && error.ok());
    return WatchProgram({.control = std::move(ours_),
                         .out = std::move(out->first),
                         .error = std::move(error->first)},
                        {.timeout = Seconds(600), .max_output_bytes = 100}, {});
  }

  pid_t child_ = -1;
  FileDescriptor process_;
  FileDescriptor ours_;
  FileDescriptor theirs_;
};

TEST_F(ProgramWatchTest, AFailureBeforeTheStartIsTheRunners) {
  Say(Frame('e', "no memory"));
  ::kill(child_, SIGKILL);
  const Result<ProgramResult> result = Watch();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(result.status().message(), "sandbox: the program was not started: no memory");
}

TEST_F(ProgramWatchTest, AFailureAfterTheStartIsTheProgramsEnd) {
  Say(Frame('s') + Frame('e', "Too many open files: '/proc'"));
  ::kill(child_, SIGKILL);
  const Result<ProgramResult> result = Watch();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->outcome, ProgramOutcome::kFinished);
  EXPECT_EQ(result->return_code, -SIGKILL);
}

TEST_F(ProgramWatchTest, NonsenseAfterTheStartEndsTheProgram) {
  Say(Frame('s') + Frame('x'));
  const Result<ProgramResult> result = Watch();  // which kills the child
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->outcome, ProgramOutcome::kFinished);
  EXPECT_EQ(result->return_code, -SIGKILL);
}

TEST_F(ProgramWatchTest, AResultThatDoesNotReadEndsTheProgram) {
  Say(Frame('s') + Frame('r', "{"));
  const Result<ProgramResult> result = Watch();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->return_code, -SIGKILL);
}

TEST_F(ProgramWatchTest, NonsenseBeforeTheStartIsAnError) {
  Say(Frame('x'));
  EXPECT_FALSE(Watch().ok());
}

TEST_F(ProgramWatchTest, SilenceAfterTheStartIsAKill) {
  Say(Frame('s'));
  ::kill(child_, SIGKILL);
  const Result<ProgramResult> result = Watch();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->return_code, -SIGKILL);
}

}  // namespace
}  // namespace pace
