// For tests: a hostile program beside an innocent neighbour. After it the sandbox
// must work as before and nothing may be left.
#ifndef PACE_SANDBOX_HOSTILE_TEST_HOSTILE_H_
#define PACE_SANDBOX_HOSTILE_TEST_HOSTILE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "sandbox/test_sandbox.h"

namespace pace {

class HostileTest : public SandboxFixture {
 protected:
  static void SetUpTestSuite() {
    // Before the interpreters start: they must not inherit it either.
    ::setenv("PACE_TEST_SECRET", "swordfish", 1);
    SandboxFixture::SetUpTestSuite();
  }

  void SetUp() override {
    SandboxFixture::SetUp();
    if (sandbox_ != nullptr) num_processes_ = NumDescendants();
  }

  ProgramResult RunHostile(const ProgramRequest& request) {
    ProgramResult neighbour;
    std::thread beside([this, &neighbour] { neighbour = Run("print(sum(range(1000)))"); });
    ProgramResult result = RunRequest(request);
    beside.join();
    EXPECT_EQ(neighbour.out, "499500\n") << neighbour.error;
    EXPECT_EQ(Run("print(6 * 7)").out, "42\n");
    EXPECT_TRUE(DescendantsSettleAt(num_processes_)) << "processes are left";
    return result;
  }
  ProgramResult RunHostile(const std::string& code, Seconds timeout = Seconds(20)) {
    return RunHostile(ProgramRequest{.code = code, .timeout = timeout});
  }

  // Not where the machine masks parts of its own.
  bool HasProc() { return Run("import os\nprint(os.path.exists('/proc/self'))").out == "True\n"; }

  // Each line of `attempts` must raise OSError.
  void ExpectAllRefused(const std::string& attempts) {
    const ProgramResult result = RunHostile(
        "import os, sys, socket\n"
        "for attempt in '''" +
        attempts +
        "'''.strip().splitlines():\n"
        "    try:\n"
        "        exec(attempt)\n"
        "        print('WENT THROUGH:', attempt)\n"
        "    except OSError as error:\n"
        "        pass\n"
        "print('done')\n");
    EXPECT_EQ(result.out, "done\n") << result.error;
  }

  int64_t num_processes_ = 0;
};

}  // namespace pace

#endif  // PACE_SANDBOX_HOSTILE_TEST_HOSTILE_H_
