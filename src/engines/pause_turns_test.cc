#include "engines/pause_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace pace {
namespace {

TEST(PauseTurnsTest, HalfOfTheServersPauseAtATime) {
  for (int size = 1; size <= 7; ++size) {
    PauseTurns turns;
    std::vector<std::unique_ptr<PauseTurns::Turn>> servers;
    std::vector<int> told(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i) {
      servers.push_back(turns.Enter([&told, i] { ++told[static_cast<size_t>(i)]; }));
    }
    const auto num_told = [&] {
      return std::count_if(told.begin(), told.end(), [](int n) { return n > 0; });
    };
    for (const auto& server : servers) server->Ask();
    const int most = std::max(1, size / 2);
    EXPECT_EQ(num_told(), most);
    // In the order in which they asked.
    for (int i = 0; i < size; ++i) {
      EXPECT_TRUE(servers[static_cast<size_t>(i)]->TakeAllowed());
      EXPECT_FALSE(servers[static_cast<size_t>(i)]->TakeAllowed());
      servers[static_cast<size_t>(i)]->End();
      EXPECT_EQ(num_told(), std::min(size, most + i + 1));
    }
  }
}

TEST(PauseTurnsTest, AServerThatLeavesGivesItsTurnToTheNext) {
  PauseTurns turns;
  int told = 0;
  auto first = turns.Enter([] {});
  auto second = turns.Enter([&] { ++told; });
  auto third = turns.Enter([] {});
  first->Ask();
  second->Ask();
  third->Ask();
  EXPECT_EQ(told, 0);
  third.reset();
  EXPECT_EQ(told, 0);
  first.reset();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(second->TakeAllowed());
}

TEST(PauseTurnsTest, ThreadsNeverPauseMoreThanHalf) {
  constexpr int kServers = 5;
  PauseTurns turns;
  std::atomic<int> paused = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kServers; ++i) {
    threads.emplace_back([&] {
      std::atomic<bool> told = false;
      const auto turn = turns.Enter([&] { told = true; });
      for (int round = 0; round < 50; ++round) {
        turn->Ask();
        while (!told.exchange(false)) std::this_thread::yield();
        EXPECT_TRUE(turn->TakeAllowed());
        const int now = ++paused;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
        std::this_thread::yield();
        --paused;
        turn->End();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, kServers / 2);
}

}  // namespace
}  // namespace pace
