// Hostile rewards: each fails alone, others are served, and no process is left.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "judge/test_reward_pool.h"

namespace pace {
namespace {

struct Hostile {
  const char* name;
  const char* body;  // of the function, for responses that say "bad"
  RewardFault fault;
};

class HostileRewardTest : public RewardPoolTest, public testing::WithParamInterface<Hostile> {};

TEST_P(HostileRewardTest, FailsAloneAndOthersAreServed) {
  const auto pool = Open(std::string("import os, sys, time, signal, subprocess, threading\n"
                                     "def bad():\n    ") +
                         GetParam().body +
                         "\n\ndef score(response, answer):\n"
                         "    if response == 'bad':\n"
                         "        return bad()\n"
                         "    return response == answer\n");
  std::vector<RewardRequest> requests;
  for (const char* response : {"4", "bad", "5", "4"}) requests.push_back(Request(response));
  const std::vector<RewardReply> replies = pool->JudgeAll(std::move(requests));
  if (replies[1].message.find("no namespace") != std::string::npos) {
    GTEST_SKIP() << "NOT CHECKED: no PID namespaces here";
  }
  EXPECT_EQ(replies[1].fault, GetParam().fault) << Name(replies[1].fault) << replies[1].message;
  EXPECT_EQ(replies[1].message.find('\n'), std::string::npos);
  EXPECT_LE(replies[1].message.size(), 600U);
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}}) {
    EXPECT_TRUE(replies[i].ok()) << i << ": " << replies[i].message;
    EXPECT_EQ(replies[i].score, i == 2 ? 0 : 1) << i;
  }
  // And afterwards.
  EXPECT_EQ(pool->Judge(Request("4")).score, 1);
}

INSTANTIATE_TEST_SUITE_P(
    RewardPoolTest, HostileRewardTest,
    testing::Values(
        Hostile{"sleeps", "time.sleep(1000)", RewardFault::kTimeout},
        Hostile{"loops", "\n    while True: pass", RewardFault::kTimeout},
        Hostile{"exits", "os._exit(0)", RewardFault::kCrash},
        Hostile{"leaves", "sys.exit(3)", RewardFault::kCrash},
        Hostile{"raises", "raise ValueError('x' * 100000 + '\\n')", RewardFault::kException},
        Hostile{"nan", "return float('nan')", RewardFault::kInvalid},
        Hostile{"infinite", "return -float('inf')", RewardFault::kInvalid},
        Hostile{"text", "return '1'", RewardFault::kInvalid},
        Hostile{"none", "return None", RewardFault::kInvalid},
        Hostile{"huge_text", "return {'score': 1, 'text': 'x' * 10 ** 7}", RewardFault::kInvalid},
        Hostile{"huge_memory", "return 'x' * 2 ** 30", RewardFault::kException},
        Hostile{"nested", "x = []; x.append(x); return {'score': 1, 'x': x}",
                RewardFault::kInvalid},
        Hostile{"forks", "\n    for _ in range(4): os.fork()\n    time.sleep(1000)",
                RewardFault::kTimeout},
        // So does what left the session, but only with a namespace.
        Hostile{"daemon",
                "assert os.getppid() == 0, 'no namespace'\n"
                "    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
                "    os._exit(1)",
                RewardFault::kCrash},
        // Without a PID namespace its parent is this test.
        Hostile{"kills_parent",
                "assert os.getppid() == 0, 'no namespace'\n"
                "    os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)",
                RewardFault::kTimeout},
        Hostile{"kills_itself", "os.kill(os.getpid(), signal.SIGSEGV); os.abort()",
                RewardFault::kCrash},
        Hostile{"floods", "\n    while True: print('x' * 65536); sys.stderr.write('y' * 65536)",
                RewardFault::kTimeout},
        Hostile{"answers_wrongly", "os.write(3, b'\\xff\\xff\\xff\\x7f'); time.sleep(1000)",
                RewardFault::kCrash},
        Hostile{"answers_twice",
                "\n    os.write(3, b'\\x1b\\x00\\x00\\x00{\"batch\":99,\"results\":[{}]}')\n"
                "    time.sleep(1000)",
                RewardFault::kCrash},
        Hostile{"closes", "os.close(3); time.sleep(1000)", RewardFault::kCrash}),
    [](const auto& test) { return test.param.name; });

TEST_F(RewardPoolTest, AForkThatReturnsAnswersOnce) {
  const auto pool = Open(
      "import os\n"
      "def score(response, answer):\n"
      "    os.fork()\n"
      "    return response == answer\n");
  for (int i = 0; i < 10; ++i) {
    const RewardReply reply = pool->Judge(Request(i % 2 == 0 ? "4" : "5"));
    EXPECT_TRUE(reply.ok()) << reply.message;
    EXPECT_EQ(reply.score, i % 2 == 0 ? 1 : 0);
  }
}

TEST_F(RewardPoolTest, AChangeOfFolderDoesNotLast) {
  options_.num_workers = 1;
  const auto pool = Open(
      "import os\n"
      "start = os.getcwd()\n"
      "def score(response, answer):\n"
      "    same = os.getcwd() == start\n"
      "    os.chdir('/')\n"
      "    return same\n");
  EXPECT_EQ(pool->Judge(Request("4")).score, 1);
  EXPECT_EQ(pool->Judge(Request("4")).score, 1);
}

}  // namespace
}  // namespace pace
