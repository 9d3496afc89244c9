// For tests: a sandbox with small limits, or a loud skip where the machine
// offers no isolation; and counts of what a test leaves behind.
#ifndef PACE_SANDBOX_TEST_SANDBOX_H_
#define PACE_SANDBOX_TEST_SANDBOX_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sandbox/isolation_probe.h"
#include "sandbox/sandbox.h"

namespace pace {

inline SandboxOptions SmallSandbox() {
  SandboxOptions options;
  options.max_programs = 4;
  options.timeout = Seconds(20);
  options.memory_bytes = int64_t{256} << 20;
  options.tmp_bytes = int64_t{16} << 20;
  options.max_file_bytes = int64_t{8} << 20;
  options.max_processes = 16;
  options.warm_modules = {"decimal", "fractions"};
  return options;
}

// Empty where isolation can be had.
inline std::string WhyNoIsolation() {
  const Status status = RequireIsolation(ProbeIsolation());
  return status.ok() ? "" : status.message();
}

// Processes that have this one as an ancestor.
inline int64_t NumDescendants() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::ifstream in(entry.path() / "stat");
    std::string line;
    if (!std::getline(in, line)) continue;
    pid_t parent = 0;
    std::sscanf(line.c_str() + line.rfind(')'), ") %*c %d", &parent);
    children.emplace(parent, std::atoi(line.c_str()));
  }
  std::set<pid_t> seen;
  std::vector<pid_t> open = {::getpid()};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto at = begin; at != end; ++at) {
      if (seen.insert(at->second).second) open.push_back(at->second);
    }
  }
  return static_cast<int64_t>(seen.size());
}

// Whether it comes to this number: the kernel shows a process for a moment longer.
inline bool DescendantsSettleAt(int64_t expected) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    if (NumDescendants() == expected) return true;
    ::usleep(10'000);
  }
  return false;
}

// Has a program of either kind run in every slot: a slot keeps a process from its first
// program of each kind on.
inline void FillSlots(Sandbox& sandbox, int64_t num_slots) {
  for (const char* kind : {"", "decimal"}) {
    std::vector<std::thread> callers;
    for (int64_t slot = 0; slot < num_slots; ++slot) {
      callers.emplace_back([&sandbox, kind] {
        const Result<ProgramResult> result =
            sandbox.Run({.code = std::string("import time  # ") + kind + "\ntime.sleep(0.3)"}, {});
        EXPECT_TRUE(result.ok()) << result.status().message();
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

inline int64_t NumOpenDescriptors() {
  std::error_code error;
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd", error),
                       std::filesystem::directory_iterator());
}

// One sandbox for all tests of a suite.
class SandboxFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!WhyNoIsolation().empty()) return;
    Result<std::unique_ptr<Sandbox>> sandbox = Sandbox::Start(SmallSandbox());
    ASSERT_TRUE(sandbox.ok()) << sandbox.status().message();
    sandbox_ = std::move(sandbox).value();
    FillSlots(*sandbox_, SmallSandbox().max_programs);
  }
  static void TearDownTestSuite() { sandbox_.reset(); }

  void SetUp() override {
    if (sandbox_ != nullptr) return;
    const std::string why = WhyNoIsolation();
    ASSERT_NE(why, "") << "the sandbox did not start";
    GTEST_SKIP() << "SKIPPED: no isolation here, nothing was tested: " << why;
  }

  ProgramResult RunRequest(const ProgramRequest& request) {
    const Result<ProgramResult> result = sandbox_->Run(request, {});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : ProgramResult();
  }
  ProgramResult Run(const std::string& code) { return RunRequest({.code = code}); }

  static inline std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace pace

#endif  // PACE_SANDBOX_TEST_SANDBOX_H_
