#include "core/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pace {
namespace {

class Counter {
 public:
  void Add() PACE_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      ++count_;
    }
    changed_.NotifyAll();
  }
  bool WaitFor(int count) PACE_EXCLUDES(mutex_) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const MutexLock lock(mutex_);
    while (count_ < count) {
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ PACE_GUARDED_BY(mutex_) = 0;
};

TEST(MutexTest, CountsFromManyThreadsAndWakesTheWaiter) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < 1000; ++i) counter.Add();
    });
  }
  EXPECT_TRUE(counter.WaitFor(4000));
  for (std::thread& thread : threads) thread.join();
}

TEST(CondVarTest, GivesUpAtTheDeadline) {
  Mutex mutex;
  CondVar never;
  const MutexLock lock(mutex);
  EXPECT_FALSE(never.WaitUntil(mutex, std::chrono::steady_clock::now()));
}

}  // namespace
}  // namespace pace
