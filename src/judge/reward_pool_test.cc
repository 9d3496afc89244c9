// Rewards in processes, hostile ones included. No test waits for a time of its own: what is slow
// is ended by the pool.
#include "judge/reward_pool.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/test_files.h"

namespace pace {
namespace {

// Every process whose command line or environment holds the mark of this test.
std::set<std::string> ProcessesWith(const std::string& mark) {
  std::set<std::string> found;
  DIR* const folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (name == std::to_string(getpid())) continue;
    for (const char* file : {"/cmdline", "/environ"}) {
      std::ifstream stream("/proc/" + name + file, std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(stream)), {});
      if (text.find(mark) != std::string::npos) found.insert(name);
    }
  }
  closedir(folder);
  return found;
}

constexpr char kMark[] = "reward-pool-test-mark";

class RewardPoolTest : public testing::Test {
 protected:
  // A pool of the function `score` in this source.
  std::shared_ptr<RewardPool> Open(const std::string& source) {
    const Result<std::shared_ptr<RewardPool>> pool = TryOpen(source);
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    return pool.ok() ? *pool : nullptr;
  }
  Result<std::shared_ptr<RewardPool>> TryOpen(const std::string& source) {
    const std::filesystem::path folder = ScratchFolder();
    file_ = WriteFile(folder / "rewards.py", source);
    return RewardPool::Open({.python = {(folder / "rewards.py").string(), "score"}}, options_);
  }
  // What the processes start inherits the mark, whatever its command line.
  void SetUp() override { setenv("REWARD_TEST_MARK", kMark, 1); }
  void TearDown() override {
    const std::set<std::string> left = ProcessesWith(kMark);
    EXPECT_TRUE(left.empty()) << left.size() << " processes are left";
  }

  static RewardRequest Request(const std::string& response, const std::string& answer = "4") {
    return {.id = "p/1", .response = response, .answer = answer, .prompt = "\"What?\""};
  }

  RewardOptions options_{.num_workers = 2, .timeout = 1, .memory_mib = 512};
  std::string file_;
};

TEST_F(RewardPoolTest, ANumberIsAReward) {
  const auto pool = Open("def score(response, answer):\n    return response == answer\n");
  const RewardReply right = pool->Judge(Request("4"));
  EXPECT_TRUE(right.ok()) << right.message;
  EXPECT_EQ(right.score, 1);
  EXPECT_TRUE(right.correct);
  EXPECT_EQ(pool->Judge(Request("5")).score, 0);
}

TEST_F(RewardPoolTest, TheSearchForOrphansFindsWhatAProcessStarted) {
  options_.num_workers = 1;
  const auto pool = Open(
      "import os, subprocess\n"
      "def score(response):\n"
      "    assert os.getppid() == 0, 'no namespace'\n"
      "    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
      "    return 1\n");
  EXPECT_EQ(ProcessesWith(kMark).size(), 1U);
  const RewardReply reply = pool->Judge(Request("4"));
  if (!reply.ok()) GTEST_SKIP() << "NOT CHECKED: no PID namespaces here";
  // A program that has just been started has no environment for a moment.
  for (int i = 0; i < 200 && ProcessesWith(kMark).size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(ProcessesWith(kMark).size(), 2U);
}

TEST_F(RewardPoolTest, ADictionaryIsRecordedAndEveryFieldCanBeAskedFor) {
  const auto pool = Open(
      "def score(**fields):\n"
      "    return {'score': 0.25, 'correct': True, 'extracted': fields['prompt'],\n"
      "            'length': len(fields['tokens']), 'id': fields['id']}\n");
  RewardRequest request = Request("4");
  request.tokens = {7, 8, 9};
  const RewardReply reply = pool->Judge(request);
  EXPECT_EQ(reply.score, 0.25);
  EXPECT_TRUE(reply.correct);
  EXPECT_EQ(reply.extracted, "What?");
  EXPECT_EQ(reply.detail, R"({"length": 3, "id": "p/1"})");
}

TEST_F(RewardPoolTest, ABatchFunctionGetsLists) {
  options_.batch = 8;
  options_.num_workers = 1;
  const auto pool = Open(
      "def score(response, answer):\n"
      "    return [{'score': r == a, 'n': len(response)} for r, a in zip(response, answer)]\n");
  std::vector<RewardRequest> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(Request(std::to_string(i)));
  const std::vector<RewardReply> replies = pool->JudgeAll(std::move(requests));
  ASSERT_EQ(replies.size(), 20U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(replies[static_cast<size_t>(i)].score, i == 4 ? 1 : 0) << i;
  }
}

TEST_F(RewardPoolTest, AFileThatDoesNotLoadIsOneLine) {
  const auto error = [this](const std::string& source) {
    const std::string message = TryOpen(source).status().message();
    return message.substr(message.find("rewards.py"));
  };
  EXPECT_TRUE(error("def score(:\n").starts_with("rewards.py: SyntaxError: "));
  EXPECT_EQ(error("import no_such_module\n"),
            "rewards.py: ModuleNotFoundError: No module named 'no_such_module' (rewards.py:1)");
  EXPECT_EQ(error("x = 1\n"), "rewards.py: AttributeError: no function score");
  const auto absent = RewardPool::Open({"/nowhere/x.py", "score"}, options_);
  EXPECT_EQ(absent.status().message(), "/nowhere/x.py: FileNotFoundError: no such file");
  options_.python = "no-such-python";
  EXPECT_FALSE(TryOpen("x = 1\n").ok());
}

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

TEST_F(RewardPoolTest, ClosingThePoolAnswersWhatIsOpen) {
  options_.timeout = 1000;
  auto pool = Open("import time\ndef score(response, answer):\n    time.sleep(1000)\n");
  Mutex mutex;
  std::vector<RewardReply> replies;
  for (int i = 0; i < 5; ++i) {
    pool->Ask(Request("4"), [&](const RewardReply& reply) {
      const MutexLock lock(mutex);
      replies.push_back(reply);
    });
  }
  pool.reset();
  ASSERT_EQ(replies.size(), 5U);
  for (const RewardReply& reply : replies) EXPECT_EQ(reply.fault, RewardFault::kCrash);
}

TEST_F(RewardPoolTest, ManyThreadsAskAtOnce) {
  const auto pool = Open("def score(response, answer):\n    return int(response)\n");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&pool, thread] {
      for (int i = 0; i < 50; ++i) {
        const int number = 100 * thread + i;
        EXPECT_EQ(pool->Judge(Request(std::to_string(number))).score, number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pace
