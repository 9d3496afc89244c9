// Every hostile program of the table, several at a time, with and without control
// groups. After each an innocent program must find everything as it should be; after
// all no process may be left.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "sandbox/hostile/programs.h"
#include "sandbox/test_sandbox.h"

namespace pace {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Most of what holds does not depend on control groups: it is tried with them where they
// are to be had, and twice where the environment asks for it.
bool Tries(bool control_groups) {
  static const bool there = ControlGroups::Make(1, 8) != nullptr;
  return control_groups == there || std::getenv("PACE_LONG_TESTS") != nullptr;
}

SandboxOptions HostileSandbox(bool control_groups) {
  SandboxOptions options;
  options.control_groups = control_groups;
  options.max_programs = 6;
  options.timeout = Seconds(30);
  options.memory_bytes = 192 * kMiB;
  options.tmp_bytes = 8 * kMiB;
  options.max_file_bytes = 4 * kMiB;
  options.max_processes = 40;
  options.max_output_bytes = kMiB / 4;
  options.warm_modules = {"decimal", "fractions"};
  // To import it takes long, and what is spoilt of it does not depend on control groups.
  if (Tries(control_groups)) options.warm_modules.push_back("sympy");
  return options;
}

// What it sees does not depend on who ran before it.
constexpr const char* kNeighbour = R"py(
import builtins, decimal, fractions, json, math, os, re, random, signal, sys
sympy = sys.modules.get('sympy')
right = sympy is None or sympy.Integer(2) + sympy.Integer(3) == 5
right = right and sum(range(1000)) == 499500 and 3 + 4 == 7 and len('abc') == 3
right = right and json.dumps([7]) == '[7]' and str(decimal.Decimal(1) / 8) == '0.125'
right = right and not any(hasattr(module, 'left') for module in (builtins, decimal, json, os, sys))
right = right and os.listdir('/tmp') == [] and os.listdir('/dev/shm') == []
right = right and sorted(os.environ) == ['HOME', 'LANG', 'PATH'] and os.getcwd() == '/tmp'
right = right and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL and os.getpid() == 2
right = right and os.umask(0o022) == 0o022 and '/tmp/evil' not in sys.path
print('right' if right else 'WRONG')
)py";

class HostileTableTest : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { ::setenv("PACE_TEST_SECRET", "swordfish", 1); }
  static void TearDownTestSuite() {
    for (std::unique_ptr<Sandbox>& sandbox : sandboxes_) sandbox.reset();
  }

  void SetUp() override {
    const std::string why = WhyNoIsolation();
    if (!why.empty()) GTEST_SKIP() << "SKIPPED: no isolation here, nothing was tested: " << why;
    std::unique_ptr<Sandbox>& shared = sandboxes_[GetParam() ? 1 : 0];
    if (shared == nullptr) {
      Result<std::unique_ptr<Sandbox>> started = Sandbox::Start(HostileSandbox(GetParam()));
      ASSERT_TRUE(started.ok()) << started.status().message();
      shared = std::move(started).value();
      FillSlots(*shared, HostileSandbox(true).max_programs);
    }
    if (GetParam() && shared->control_groups() == nullptr) {
      GTEST_SKIP() << "SKIPPED: no control group is to be had here";
    }
    sandbox_ = shared.get();
    num_processes_ = NumDescendants();
  }

  ProgramResult Run(const std::string& code, Seconds timeout) {
    const Result<ProgramResult> result = sandbox_->Run({.code = code, .timeout = timeout}, {});
    EXPECT_TRUE(result.ok()) << "the runner failed: " << result.status().message();
    return result.ok() ? *result : ProgramResult();
  }

  // One of the table and an innocent one after it.
  void Try(const HostileProgram& program) {
    SCOPED_TRACE(program.name);
    const bool endless = program.end == HostileEnd::kTimeLimit;
    const ProgramResult result = Run(HostilePrelude() + program.code, Seconds(endless ? 1.5 : 30));
    const std::string said =
        Concat("out: ", result.out.substr(0, 500), "\nerror: ", result.error.substr(0, 500),
               "\ncode: ", result.return_code.value_or(-1000));
    EXPECT_EQ(endless,
              program.end != HostileEnd::kAny && result.outcome == ProgramOutcome::kTimeLimit)
        << said;
    switch (program.end) {
      case HostileEnd::kHeld:
        EXPECT_EQ(result.out, "held\n") << said;
        EXPECT_EQ(result.return_code, 0) << said;
        break;
      case HostileEnd::kError:
        EXPECT_EQ(result.return_code, 1) << said;
        break;
      case HostileEnd::kKilled:
        EXPECT_EQ(result.return_code, -SIGKILL) << said;
        break;
      case HostileEnd::kCode:
        EXPECT_EQ(result.return_code, program.return_code) << said;
        break;
      case HostileEnd::kTimeLimit:
      case HostileEnd::kAny:
        break;
    }
    EXPECT_LE(result.out.size(), static_cast<size_t>(kMiB / 4));
    const ProgramResult neighbour = Run(kNeighbour, Seconds(30));
    EXPECT_EQ(neighbour.out, "right\n") << neighbour.error;
  }

  void TryAll(const std::vector<HostileProgram>& programs, int num_at_once) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < num_at_once; ++caller) {
      callers.emplace_back([this, &next, &programs] {
        for (size_t index = 0; (index = next++) < programs.size();) Try(programs[index]);
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_TRUE(DescendantsSettleAt(num_processes_)) << "processes are left";
    ExpectMemoryWasBound();
  }

  // By the kernel's own account.
  void ExpectMemoryWasBound() const {
    const ControlGroups* groups = sandbox_->control_groups();
    if (groups == nullptr) return;
    for (int64_t slot = 0; slot < HostileSandbox(true).max_programs; ++slot) {
      EXPECT_LE(groups->PeakMemory(slot), (192 + 64) * kMiB) << "slot " << slot;
    }
  }

  static inline std::unique_ptr<Sandbox> sandboxes_[2];
  Sandbox* sandbox_ = nullptr;
  int64_t num_processes_ = 0;
};

TEST_P(HostileTableTest, NothingIsReached) {
  if (Tries(GetParam())) TryAll(ReachingPrograms(), 4);
}

TEST_P(HostileTableTest, NothingIsTakenBeyondItsLimit) {
  if (Tries(GetParam())) TryAll(GreedyPrograms(), 6);
}

TEST_P(HostileTableTest, NothingIsSpoiltForTheNext) {
  if (Tries(GetParam())) TryAll(SpoilingPrograms(), 1);
}

TEST_P(HostileTableTest, MemoryCountsOnceAndWhollyHoweverItIsHeld) {
  if (!GetParam() &&
      Run("import os\nprint(os.path.exists('/proc/self'))", Seconds(30)).out != "True\n") {
    GTEST_SKIP() << "SKIPPED: no /proc may be mounted here: nothing is added up";
  }
  TryAll(HoardingPrograms(), 2);
}

INSTANTIATE_TEST_SUITE_P(Bounds, HostileTableTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& groups) {
                           return groups.param ? "ControlGroups" : "Watched";
                         });

}  // namespace
}  // namespace pace
