#include "record/run_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>

namespace pace {
namespace {

std::string ScratchDirectory(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(PACE_BINARY_DIR) / "lock_scratch" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

TEST(RunLockTest, ASecondHolderIsRefusedInOneLineThatNamesTheFirst) {
  const std::string directory = ScratchDirectory("second");
  std::optional<Result<RunLock>> first(RunLock::Take(directory));
  ASSERT_TRUE(first->ok());
  const Result<RunLock> second = RunLock::Take(directory);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(Concat("process ", getpid())), std::string::npos)
      << second.status().message();
  first.reset();
  EXPECT_TRUE(RunLock::Take(directory).ok());
}

TEST(RunLockTest, AKilledHolderReleasesIt) {
  const std::string directory = ScratchDirectory("killed");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Result<RunLock> held = RunLock::Take(directory);
    const char mark = held.ok() ? 'y' : 'n';
    (void)!write(ready[1], &mark, 1);
    pause();
    _exit(0);
  }
  char mark = 0;
  ASSERT_EQ(read(ready[0], &mark, 1), 1);
  EXPECT_EQ(mark, 'y');
  EXPECT_FALSE(RunLock::Take(directory).ok());
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(RunLock::Take(directory).ok());
  close(ready[0]);
  close(ready[1]);
}

TEST(RunLockTest, ADirectoryThatIsNotThereIsOneLine) {
  const Result<RunLock> lock = RunLock::Take("/nowhere/at/all");
  ASSERT_FALSE(lock.ok());
  EXPECT_NE(lock.status().message().find("/nowhere/at/all/lock"), std::string::npos);
}

}  // namespace
}  // namespace pace
