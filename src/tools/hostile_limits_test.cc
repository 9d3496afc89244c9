// Programs that take all they can get, or will not end: one test each.
#include <gtest/gtest.h>
#include <signal.h>

#include "tools/test_hostile.h"

namespace pace {
namespace {

using HostileLimitsTest = HostileTest;

constexpr Seconds kShort{3};

TEST_F(HostileLimitsTest, AForkBombIsBoundAndGone) {
  const ProgramResult result = RunHostile(
      "import os\n"
      "while True:\n"
      "    try: os.fork()\n"
      "    except OSError: pass\n",
      kShort);
  EXPECT_EQ(result.outcome, ProgramOutcome::kTimeLimit);
}

TEST_F(HostileLimitsTest, ProcessesAreCounted) {
  const ProgramResult result = RunHostile(
      "import os, time\n"
      "children = 0\n"
      "try:\n"
      "    while children < 100:\n"
      "        if os.fork() == 0: time.sleep(60)\n"
      "        children += 1\n"
      "except OSError: print(children)\n");
  EXPECT_EQ(result.out, "15\n") << result.error;  // and the program itself
}

TEST_F(HostileLimitsTest, AMemoryHogGetsAnError) {
  const ProgramResult result = RunHostile(
      "held = []\n"
      "while True: held.append(bytearray(1 << 20))\n");
  EXPECT_EQ(result.outcome, ProgramOutcome::kFinished);
  EXPECT_NE(result.return_code, 0);
}

// Eight processes of which each keeps to its limit: `take` makes 100 MiB in one.
class HostileSumTest : public HostileTest {
 protected:
  void ExpectTooMuch(const std::string& take) {
    if (!HasProc()) GTEST_SKIP() << "no /proc may be mounted here: nothing is added up";
    const ProgramResult result = RunHostile(
        "import ctypes, mmap, os, time\n"
        "reading, writing = os.pipe()\n"
        "for child in range(8):\n"
        "    if os.fork() == 0:\n" +
        take +
        "        os.write(writing, b'.')\n"
        "        time.sleep(60)\n"
        "os.close(writing)\n"
        "arrived = b''\n"
        "while len(arrived) < 8: arrived += os.read(reading, 8) or exit('killed')\n"
        "time.sleep(0.5)\n"
        "print('all eight')\n");
    EXPECT_EQ(result.outcome, ProgramOutcome::kFinished);
    EXPECT_EQ(result.return_code, -SIGKILL) << result.out << result.error;
  }
};

TEST_F(HostileSumTest, MemoryOfManyProcessesIsBoundTogether) {
  ExpectTooMuch("        held = b'x' * (100 << 20)\n");
}

TEST_F(HostileSumTest, SharedMemoryCounts) {
  ExpectTooMuch(
      "        held = mmap.mmap(-1, 100 << 20)\n"
      "        for page in range(0, 100 << 20, 4096): held[page] = 1\n");
}

TEST_F(HostileSumTest, ProcessesThatHideCount) {
  ExpectTooMuch(
      "        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # not dumpable\n"
      "        held = b'x' * (100 << 20)\n");
}

TEST_F(HostileLimitsTest, PagesSharedSinceAForkCountOnce) {
  const ProgramResult result = RunHostile(
      "import os, time\n"
      "held = bytearray(b'x' * (100 << 20))\n"
      "for child in range(4):\n"
      "    if os.fork() == 0:\n"
      "        time.sleep(0.5)\n"
      "        os._exit(0)\n"
      "for child in range(4): os.wait()\n"
      "print('shared')\n");
  EXPECT_EQ(result.out, "shared\n") << result.error;
}

// A spawned child runs on its parent's memory until it executes its program; here
// it waits half a second before, for a file that another process has leased.
TEST_F(HostileLimitsTest, MemoryLentToASpawnedChildCountsOnce) {
  const ProgramResult result = RunHostile(
      "import fcntl, os, signal, time\n"
      "reading, writing = os.pipe()\n"
      "if os.fork() == 0:\n"
      "    def give_back(number, frame):\n"
      "        time.sleep(0.5)\n"
      "        os._exit(0)\n"
      "    signal.signal(signal.SIGIO, give_back)\n"
      "    file = os.open('leased', os.O_CREAT | os.O_RDWR)\n"
      "    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
      "    os.write(writing, b'.')\n"
      "    time.sleep(60)\n"
      "os.read(reading, 1)\n"
      "held = b'x' * (150 << 20)\n"
      "start = time.monotonic()\n"
      "child = os.posix_spawn('/bin/true', ['true'], {},\n"
      "    file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'leased', os.O_RDONLY, 0)])\n"
      "print(time.monotonic() - start >= 0.5, os.waitpid(child, 0)[1])\n");
  EXPECT_EQ(result.out, "True 0\n") << result.error;
}

TEST_F(HostileLimitsTest, ADiskFillerMeetsTheEndOfItsOwnDisk) {
  const ProgramResult result = RunHostile(
      "import os\n"
      "total = 0\n"
      "try:\n"
      "    for number in range(1000):\n"
      "        file = os.open(f'{number}', os.O_CREAT | os.O_WRONLY)\n"
      "        for part in range(4): total += os.write(file, bytes(1 << 20))\n"
      "        os.close(file)\n"
      "except OSError as error: print(total <= 16 << 20, error.errno)\n");
  EXPECT_EQ(result.out, "True 28\n") << result.error;
}

TEST_F(HostileLimitsTest, AFileIsBound) {
  const ProgramResult result = RunHostile(
      "import signal\n"
      "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
      "try: open('large', 'wb').write(bytes(9 << 20))\n"
      "except OSError as error: print(error.errno)\n");
  EXPECT_EQ(result.out, "27\n") << result.error;
}

TEST_F(HostileLimitsTest, FilesWithoutContentAreCounted) {
  const ProgramResult result = RunHostile(
      "number = 0\n"
      "try:\n"
      "    while number < 100000:\n"
      "        open(f'{number}', 'w').close()\n"
      "        number += 1\n"
      "except OSError as error: print(number < 20000)\n");
  EXPECT_EQ(result.out, "True\n") << result.error;
}

TEST_F(HostileLimitsTest, EndlessOutputIsCut) {
  const ProgramResult result = RunHostile(
      "import sys\n"
      "while True:\n"
      "    print('x' * 1000)\n"
      "    print('y' * 1000, file=sys.stderr)\n",
      kShort);
  EXPECT_EQ(result.outcome, ProgramOutcome::kTimeLimit);
  EXPECT_EQ(result.out.size(), size_t{1} << 20);
  EXPECT_EQ(result.error.size(), size_t{1} << 20);
  EXPECT_TRUE(result.out_cut && result.error_cut);
}

TEST_F(HostileLimitsTest, IgnoringSignalsHelpsNobody) {
  const ProgramResult result = RunHostile(
      "import signal\n"
      "for number in range(1, 65):\n"
      "    try: signal.signal(number, signal.SIG_IGN)\n"
      "    except (OSError, ValueError): pass\n"
      "print('ready', flush=True)\n"
      "while True: pass\n",
      kShort);
  EXPECT_EQ(result.outcome, ProgramOutcome::kTimeLimit);
  EXPECT_EQ(result.out, "ready\n");
}

TEST_F(HostileLimitsTest, ADoubleForkDiesWithTheProgram) {
  const ProgramResult result = RunHostile(
      "import os, time\n"
      "if os.fork() == 0:\n"
      "    os.setsid()\n"
      "    if os.fork() == 0:\n"
      "        os.closerange(0, 64)\n"
      "        time.sleep(600)\n"
      "    os._exit(0)\n"
      "os.wait()\n"
      "print('left')\n");
  EXPECT_EQ(result.outcome, ProgramOutcome::kFinished);
  EXPECT_EQ(result.out, "left\n");
}

TEST_F(HostileLimitsTest, HugeArgumentsAreAnErrorOfTheProgram) {
  const ProgramResult result = RunHostile(
      "import subprocess\n"
      "for arguments in (['x' * (16 << 20)], ['x' * 1000] * 100000):\n"
      "    try: subprocess.run(['/bin/true'] + arguments)\n"
      "    except OSError as error: print(error.errno)\n"
      "    except MemoryError: print(7)\n");
  EXPECT_EQ(result.out, "7\n7\n") << result.error;
}

TEST_F(HostileLimitsTest, BinaryOutputArrivesAsItIs) {
  const ProgramResult result =
      RunHostile("import os\nos.write(1, bytes(range(256)) * 16)\nos.write(2, b'\\xff\\0')\n");
  std::string expected;
  for (int round = 0; round < 16; ++round) {
    for (int byte = 0; byte < 256; ++byte) expected += static_cast<char>(byte);
  }
  EXPECT_EQ(result.out, expected);
  EXPECT_EQ(result.error, std::string("\xff\0", 2));
}

TEST_F(HostileLimitsTest, DeepRecursionEndsTheProgramAlone) {
  const ProgramResult endless = RunHostile(
      "import sys\n"
      "sys.setrecursionlimit(10 ** 9)\n"
      "def deeper(): return deeper()\n"
      "deeper()\n");
  EXPECT_NE(endless.return_code, 0);
  const ProgramResult nested = RunHostile(
      "import sys\n"
      "sys.setrecursionlimit(10 ** 9)\n"
      "nested = []\n"
      "for depth in range(200000): nested = [nested]\n"
      "repr(nested)\n");
  EXPECT_NE(nested.return_code, 0);
}

TEST_F(HostileLimitsTest, KillingItsParentDoesNothing) {
  const ProgramResult result = RunHostile(
      "import os, signal\n"
      "for target in (os.getppid(), 1, -1):\n"
      "    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGCHLD):\n"
      "        try: os.kill(target, number)\n"
      "        except OSError: pass\n"
      "print('alive')\n");
  EXPECT_EQ(result.outcome, ProgramOutcome::kFinished);
  EXPECT_EQ(result.out, "alive\n");
}

}  // namespace
}  // namespace pace
