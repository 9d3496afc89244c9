// What becomes of unusual output and arguments; hostile_table_test.cc has the rest.
#include <gtest/gtest.h>

#include "sandbox/hostile/test_hostile.h"

namespace pace {
namespace {

using HostileLimitsTest = HostileTest;

constexpr Seconds kShort{1.5};

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

}  // namespace
}  // namespace pace
