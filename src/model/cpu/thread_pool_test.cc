#include "model/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace pace {
namespace {

TEST(ThreadPoolTest, RunsEveryTaskOnceWhateverTheCounts) {
  for (const int64_t num_threads : {1, 2, 3, 5}) {
    ThreadPool threads(num_threads);
    EXPECT_EQ(threads.num_threads(), num_threads);
    for (const int64_t num_tasks : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<int> runs(static_cast<size_t>(num_tasks));
      threads.ParallelFor(num_tasks, [&](int64_t task, int64_t worker) {
        ASSERT_GE(worker, 0);
        ASSERT_LT(worker, num_threads);
        ++runs[static_cast<size_t>(task)];
      });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(num_tasks), 1))
          << num_threads << " threads, " << num_tasks << " tasks";
    }
  }
}

TEST(ThreadPoolTest, ASingleTaskRunsOnTheCaller) {
  ThreadPool threads(3);
  const std::thread::id caller = std::this_thread::get_id();
  threads.ParallelFor(1, [&](int64_t, int64_t worker) {
    EXPECT_EQ(worker, 0);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

// Each loop reads what the one before wrote: a missing barrier shows.
TEST(ThreadPoolTest, ALoopSeesAllOfTheLoopBefore) {
  ThreadPool threads(2);
  constexpr int64_t kSize = 16;
  std::vector<int64_t> values(kSize);
  std::iota(values.begin(), values.end(), 0);
  for (int64_t round = 0; round < 2000; ++round) {
    std::vector<int64_t> next(kSize);
    threads.ParallelFor(kSize, [&](int64_t task, int64_t) {
      next[static_cast<size_t>(task)] = values[static_cast<size_t>((task + 1) % kSize)] + 1;
    });
    values = next;
  }
  for (int64_t i = 0; i < kSize; ++i) {
    EXPECT_EQ(values[static_cast<size_t>(i)], (i + 2000) % kSize + 2000);
  }
}

TEST(ThreadPoolTest, WakesThreadsThatHaveGoneToSleep) {
  ThreadPool threads(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> num_inside = 0;
    // Each task waits for the other, so that two threads must take part.
    threads.ParallelFor(2, [&](int64_t, int64_t) {
      ++num_inside;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (num_inside.load() < 2) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        std::this_thread::yield();
      }
    });
    EXPECT_EQ(num_inside.load(), 2);
  }
}

TEST(ThreadPoolTest, OneBusyThreadDoesNotKeepTheOthersTasks) {
  ThreadPool threads(2);
  std::atomic<int64_t> num_done = 0;
  constexpr int64_t kTasks = 20;
  threads.ParallelFor(kTasks, [&](int64_t task, int64_t) {
    if (task == 0) {
      // The caller's first task ends only when the helper has done all others.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (num_done.load() < kTasks - 1) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        std::this_thread::yield();
      }
    }
    ++num_done;
  });
  EXPECT_EQ(num_done.load(), kTasks);
}

TEST(ThreadPoolTest, EndsAtOnceWhetherItsThreadsSpinOrSleep) {
  for (const auto pause : {std::chrono::milliseconds(0), std::chrono::milliseconds(3)}) {
    for (int round = 0; round < 20; ++round) {
      ThreadPool threads(3);
      if (round % 2 == 0) threads.ParallelFor(4, [](int64_t, int64_t) {});
      std::this_thread::sleep_for(pause);
    }
  }
}

}  // namespace
}  // namespace pace
