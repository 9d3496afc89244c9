// Nothing remains of many runs: no process, mount, file, descriptor or memory.
// PACE_SANDBOX_RUNS sets how many (default 300).
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "sandbox/test_sandbox.h"

namespace pace {
namespace {

int64_t NumRuns() {
  const char* wanted = std::getenv("PACE_SANDBOX_RUNS");
  return wanted == nullptr ? 300 : std::atoll(wanted);
}

int64_t NumLines(const char* path) {
  std::ifstream in(path);
  int64_t count = 0;
  std::string line;
  while (std::getline(in, line)) ++count;
  return count;
}

int64_t NumFilesInTmp() {
  std::error_code error;
  return std::distance(std::filesystem::directory_iterator("/tmp", error),
                       std::filesystem::directory_iterator());
}

// Resident memory of this process, in KiB.
int64_t ResidentKb() {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

class LeakTest : public SandboxFixture {
 protected:
  // A mix of programs that end well, fail, are ended, leave processes and files.
  void RunMany(int64_t count) {
    static const char* kPrograms[] = {
        "print(1)",
        "import decimal; print(decimal.Decimal(1) / 3)",
        "1 / 0",
        "import os, time\nif os.fork() == 0: time.sleep(600)",
        "open('/tmp/file', 'w').write('x' * 100000)",
        "import os; os.kill(os.getpid(), 9)",
    };
    std::vector<std::thread> callers;
    for (int64_t caller = 0; caller < 4; ++caller) {
      callers.emplace_back([caller, count] {
        for (int64_t run = caller; run < count; run += 4) {
          const size_t kind = static_cast<size_t>(run) % std::size(kPrograms);
          const Result<ProgramResult> result = sandbox_->Run({.code = kPrograms[kind]}, {});
          ASSERT_TRUE(result.ok()) << result.status().message();
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
};

TEST_F(LeakTest, NothingRemains) {
  RunMany(40);
  const int64_t processes = NumDescendants();
  const int64_t descriptors = NumOpenDescriptors();
  const int64_t mounts = NumLines("/proc/self/mountinfo");
  const int64_t memory = ResidentKb();
  RunMany(NumRuns());
  EXPECT_TRUE(DescendantsSettleAt(processes));
  EXPECT_EQ(NumOpenDescriptors(), descriptors);
  EXPECT_EQ(NumLines("/proc/self/mountinfo"), mounts);
  EXPECT_LT(ResidentKb(), memory + 20'000);
}

TEST_F(LeakTest, TheSandboxItselfLeavesNothing) {
  const int64_t processes = NumDescendants();
  const int64_t descriptors = NumOpenDescriptors();
  const int64_t files = NumFilesInTmp();
  {
    const Result<std::unique_ptr<Sandbox>> sandbox = Sandbox::Start(SmallSandbox());
    ASSERT_TRUE(sandbox.ok()) << sandbox.status().message();
  }
  EXPECT_TRUE(DescendantsSettleAt(processes));
  EXPECT_EQ(NumOpenDescriptors(), descriptors);
  EXPECT_LE(NumFilesInTmp(), files + 1) << "others use /tmp as well, but we do not";
}

}  // namespace
}  // namespace pace
