#include "execution/tool_threads.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "core/test_no_threads.h"

namespace pace {
namespace {

// Runs until it is cancelled where the code says so.
class PatientRunner final : public ProgramRunner {
 public:
  Result<ProgramResult> Run(const ProgramRequest& request,
                            const Cancellation& cancellation) override {
    ++num_running;
    ProgramResult result;
    if (request.code == "wait") {
      pollfd stop{.fd = cancellation.descriptor, .events = cancellation.events, .revents = 0};
      poll(&stop, 1, -1);
      result.outcome = ProgramOutcome::kCancelled;
    } else {
      result.return_code = 0;
      result.out = request.code;
    }
    --num_running;
    return result;
  }
  std::atomic<int> num_running = 0;
};

ToolCall CallOf(const std::string& code) {
  return {"code_interpreter", "{\"code\": \"" + code + "\"}"};
}

class ToolThreadsTest : public testing::Test {
 protected:
  ToolThreadsTest() {
    auto runner = std::make_unique<PatientRunner>();
    runner_ = runner.get();
    executor_ = std::make_shared<ToolExecutor>(std::move(runner), false);
  }
  void Take(const Result<ToolReply>& reply) {
    const MutexLock lock(mutex_);
    texts_.insert(reply->text);
    ++num_replies_;
    replied_.NotifyAll();
  }
  void WaitFor(int64_t count) {
    const MutexLock lock(mutex_);
    while (num_replies_ < count) {
      replied_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::seconds(1));
    }
  }

  PatientRunner* runner_;
  std::shared_ptr<ToolExecutor> executor_;
  Mutex mutex_;
  CondVar replied_;
  std::multiset<std::string> texts_;
  int64_t num_replies_ = 0;
};

TEST_F(ToolThreadsTest, EveryCallIsAnsweredOnce) {
  ToolThreads threads(executor_, 4);
  for (int i = 0; i < 100; ++i) {
    threads.Ask(CallOf(std::to_string(i)), [this](Result<ToolReply> reply) { Take(reply); });
  }
  WaitFor(100);
  EXPECT_EQ(num_replies_, 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(texts_.count(std::to_string(i)), 1U);
}

TEST_F(ToolThreadsTest, WithoutAThreadACallFails) {
  ToolThreads threads(executor_, 4);
  {
    const NoNewThreads none;
    threads.Ask(CallOf("lost"), [this](Result<ToolReply> reply) {
      ASSERT_TRUE(reply.ok());
      EXPECT_TRUE(reply->failed);
      Take(reply);
    });
    EXPECT_EQ(num_replies_, 1) << "at once: no thread is there to do it later";
  }
  threads.Ask(CallOf("1"), [this](Result<ToolReply> reply) { Take(reply); });
  WaitFor(2);
  EXPECT_EQ(texts_.count("1"), 1U);
}

TEST_F(ToolThreadsTest, WithTooFewThreadsCallsWait) {
  ToolThreads threads(executor_, 4);
  threads.Ask(CallOf("0"), [this](Result<ToolReply> reply) { Take(reply); });
  {
    const NoNewThreads none;
    for (int i = 1; i < 20; ++i) {
      threads.Ask(CallOf(std::to_string(i)), [this](Result<ToolReply> reply) { Take(reply); });
    }
  }
  WaitFor(20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(texts_.count(std::to_string(i)), 1U);
}

TEST_F(ToolThreadsTest, CallsThatWaitAreGivenUpAtTheEnd) {
  {
    ToolThreads threads(executor_, 2);
    for (int i = 0; i < 5; ++i) {
      threads.Ask(CallOf("wait"), [this](Result<ToolReply> reply) { Take(reply); });
    }
    while (runner_->num_running < 2) std::this_thread::yield();
  }
  // Two were under way and were answered; three never began.
  EXPECT_EQ(num_replies_, 2);
  EXPECT_EQ(texts_.count("no stdout here"), 2U);
}

}  // namespace
}  // namespace pace
