// Rewards in processes. No test waits for a time of its own: what is slow is ended by the pool.
#include "judge/reward_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "judge/test_reward_pool.h"

namespace pace {
namespace {

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
  const auto absent = RewardPool::Open({.python = {"/nowhere/x.py", "score"}}, options_);
  EXPECT_EQ(absent.status().message(), "/nowhere/x.py: FileNotFoundError: no such file");
  options_.python = "no-such-python";
  EXPECT_FALSE(TryOpen("x = 1\n").ok());
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
