#include "sandbox/sandbox.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "sandbox/test_sandbox.h"

namespace pace {
namespace {

using SandboxTest = SandboxFixture;

TEST_F(SandboxTest, RunsAProgram) {
  const ProgramResult result = Run("print(6 * 7)");
  EXPECT_EQ(result.outcome, ProgramOutcome::kFinished);
  EXPECT_EQ(result.return_code, 0);
  EXPECT_EQ(result.out, "42\n");
  EXPECT_EQ(result.error, "");
}

TEST_F(SandboxTest, GivesItsInput) {
  const std::string input(300'000, 'x');
  EXPECT_EQ(RunRequest({.code = "print(len(input()))", .input = input}).out, "300000\n");
  EXPECT_EQ(Run("import sys; print(repr(sys.stdin.read()))").out, "''\n");
}

TEST_F(SandboxTest, AnErrorShowsTheLineThatRaisedIt) {
  const ProgramResult result = Run("def f():\n    return 1 / 0\nf()\n");
  EXPECT_EQ(result.return_code, 1);
  // Releases differ in how they point into a line.
  EXPECT_TRUE(
      result.error.starts_with("Traceback (most recent call last):\n"
                               "  File \"main.py\", line 3, in <module>\n"
                               "    f()\n"))
      << result.error;
  EXPECT_NE(result.error.find("  File \"main.py\", line 2, in f\n    return 1 / 0\n"),
            std::string::npos)
      << result.error;
  EXPECT_TRUE(result.error.ends_with("ZeroDivisionError: division by zero\n")) << result.error;
}

TEST_F(SandboxTest, ASyntaxErrorIsTheProgramsError) {
  const ProgramResult result = Run("print(\n");
  EXPECT_EQ(result.return_code, 1);
  EXPECT_NE(result.error.find("SyntaxError"), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find("zygote"), std::string::npos) << result.error;
}

TEST_F(SandboxTest, ReturnCodesAreThoseOfPython) {
  EXPECT_EQ(Run("import sys; sys.exit(3)").return_code, 3);
  EXPECT_EQ(Run("import sys; sys.exit('why')").error, "why\n");
  EXPECT_EQ(Run("import sys; sys.exit('why')").return_code, 1);
  EXPECT_EQ(Run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)").return_code, -15);
  EXPECT_EQ(Run("import os; os._exit(7)").return_code, 7);
}

TEST_F(SandboxTest, TheEndOfTheInterpreterHappens) {
  EXPECT_EQ(Run("import atexit, threading, time\n"
                "atexit.register(print, 'last')\n"
                "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()\n"
                "print('main', end=' ')\n")
                .out,
            "main thread\nlast\n");
}

TEST_F(SandboxTest, MainIsMain) {
  EXPECT_EQ(Run("import sys\n"
                "class A: pass\n"
                "print(__name__, A.__module__, sys.argv, sys.modules['__main__'].A is A)\n")
                .out,
            "__main__ __main__ ['main.py'] True\n");
}

TEST_F(SandboxTest, FilesGoInAndOut) {
  const ProgramResult result =
      RunRequest({.code = "import data.table as t\nopen('out.bin', 'wb').write(t.value)\n",
                  .files = {{"data/table.py", "value = bytes([0, 255])\n"}},
                  .fetch = {"out.bin", "missing"}});
  ASSERT_EQ(result.files.size(), 1u) << result.error;
  EXPECT_EQ(result.files[0].path, "out.bin");
  EXPECT_EQ(result.files[0].content, std::string("\0\xff", 2));
}

TEST_F(SandboxTest, PathsThatLeaveTheFolderAreRefused) {
  for (const char* path : {"../a", "/etc/a", "a/../b", "", "a//b"}) {
    EXPECT_FALSE(sandbox_->Run({.code = "", .files = {{path, ""}}}, {}).ok()) << path;
    EXPECT_FALSE(sandbox_->Run({.code = "", .fetch = {path}}, {}).ok()) << path;
  }
}

TEST_F(SandboxTest, TimeRunsOut) {
  const ProgramResult result =
      RunRequest({.code = "print('begun', flush=True)\nwhile True: pass", .timeout = Seconds(0.3)});
  EXPECT_EQ(result.outcome, ProgramOutcome::kTimeLimit);
  EXPECT_FALSE(result.return_code.has_value());
  EXPECT_EQ(result.out, "begun\n");
  EXPECT_GE(result.time.count(), 0.3);
}

TEST_F(SandboxTest, MemoryIsTheRequestsOwn) {
  const std::string code = "held = bytearray(120 << 20); print(len(held))";
  EXPECT_EQ(RunRequest({.code = code, .memory_bytes = int64_t{64} << 20}).return_code, 1);
  EXPECT_EQ(RunRequest({.code = code, .memory_bytes = int64_t{400} << 20}).return_code, 0);
}

TEST_F(SandboxTest, ACallerThatGivesUpGivesItsSlotBack) {
  const FileDescriptor gone(::eventfd(0, EFD_CLOEXEC));
  std::vector<std::thread> callers;
  std::atomic<int> num_cancelled{0};
  // More than there are slots: some wait for one when they give up.
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&gone, &num_cancelled] {
      const Result<ProgramResult> result =
          sandbox_->Run({.code = "import time; time.sleep(600)", .timeout = Seconds(600)},
                        {.descriptor = gone.get()});
      if (result.ok() && result->outcome == ProgramOutcome::kCancelled) ++num_cancelled;
    });
  }
  ::eventfd_write(gone.get(), 1);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(num_cancelled, 8);
  EXPECT_EQ(Run("print(1)").out, "1\n");
}

TEST_F(SandboxTest, AtMostSoManyRunAtOnce) {
  // Each says when it began and ended, by a clock that all share.
  std::vector<std::string> spans(10);
  std::vector<std::thread> callers;
  for (std::string& span : spans) {
    callers.emplace_back([this, &span] {
      span = Run("import time\nbegun = time.monotonic()\ntime.sleep(0.05)\n"
                 "print(begun, time.monotonic())")
                 .out;
    });
  }
  for (std::thread& caller : callers) caller.join();
  std::vector<std::pair<double, int>> edges;
  for (const std::string& span : spans) {
    double begun = 0;
    double ended = 0;
    ASSERT_EQ(std::sscanf(span.c_str(), "%lf %lf", &begun, &ended), 2) << span;
    edges.emplace_back(begun, 1);
    edges.emplace_back(ended, -1);
  }
  std::sort(edges.begin(), edges.end());
  int running = 0;
  for (const auto& [time, change] : edges) EXPECT_LE(running += change, 4);
}

TEST_F(SandboxTest, NothingOfAProgramReachesTheNext) {
  const std::string leave =
      "import os, sys, decimal, builtins, json\n"
      "open('/tmp/left', 'w').write('x')\n"
      "os.environ['LEFT'] = '1'\n"
      "decimal.left = builtins.left = json.left = True\n"
      "os.mkdir('/dev/shm/folder')\n";
  const std::string look =
      "import os, sys, decimal, builtins, json\n"
      "print(os.listdir('/tmp'), os.listdir('/dev/shm'), 'LEFT' in os.environ,\n"
      "      hasattr(decimal, 'left'), hasattr(builtins, 'left'), hasattr(json, 'left'))\n";
  EXPECT_EQ(Run(leave).return_code, 0);
  EXPECT_EQ(Run(look).out, "[] [] False False False False\n");
}

TEST_F(SandboxTest, NamespacesAreFresh) {
  const std::string code =
      "import os\n"
      "if os.path.exists('/proc/self/ns'):\n"
      "    for name in ('user', 'pid', 'mnt', 'net', 'ipc', 'uts'):\n"
      "        print(os.readlink(f'/proc/self/ns/{name}'))\n";
  // Side by side, as the kernel may give a number again after a namespace's end.
  std::string a;
  std::string b;
  std::thread other([this, &a, &code] { a = Run(code + "import time; time.sleep(0.5)").out; });
  b = Run(code + "import time; time.sleep(0.5)").out;
  other.join();
  if (a.empty()) GTEST_SKIP() << "SKIPPED: no /proc may be mounted here";
  std::istringstream lines(a);
  std::string line;
  while (std::getline(lines, line)) EXPECT_EQ(b.find(line), std::string::npos) << line;
}

TEST_F(SandboxTest, RandomNumbersDifferFromRunToRun) {
  const std::string code = "import random; print(random.random())";
  EXPECT_NE(Run(code).out, Run(code).out);
}

TEST_F(SandboxTest, OrderOfSetsDoesNotDifferFromRunToRun) {
  const std::string code = "print({'a', 'b', 'c', 'd', 'e'}, hash('x'))";
  EXPECT_EQ(Run(code).out, Run(code).out);
}

TEST_F(SandboxTest, WarmModulesAreThereWhenNamed) {
  EXPECT_EQ(sandbox_->warm_modules(), (std::vector<std::string>{"decimal", "fractions"}));
  EXPECT_EQ(Run("import sys; print('deci' 'mal' in sys.modules)").out, "False\n");
  EXPECT_EQ(Run("import sys; print('decimal' in sys.modules)").out, "True\n");
}

TEST_F(SandboxTest, AnInterpreterThatDiedIsReplaced) {
  // The plain and the warm one are this process's only children.
  std::ifstream in("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  pid_t child = 0;
  int num_killed = 0;
  while (in >> child) {
    ::kill(child, SIGKILL);
    ++num_killed;
  }
  if (num_killed == 0) GTEST_SKIP() << "SKIPPED: this kernel does not list children";
  EXPECT_EQ(Run("print(1)").out, "1\n");
  EXPECT_EQ(Run("import decimal; print(2)").out, "2\n");
}

TEST_F(SandboxTest, SubprocessesAndPipesWork) {
  EXPECT_EQ(Run("import subprocess; print(subprocess.run(['/bin/echo', 'hi'],\n"
                "capture_output=True, text=True).stdout, end='')")
                .out,
            "hi\n");
  EXPECT_EQ(Run("from multiprocessing import Pool\n"
                "with Pool(2) as pool: print(pool.map(abs, [-1, -2]))")
                .out,
            "[1, 2]\n");
  EXPECT_EQ(Run("import asyncio\nasync def f(): return 5\nprint(asyncio.run(f()))").out, "5\n");
}

}  // namespace
}  // namespace pace
