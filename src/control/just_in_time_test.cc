#include "control/just_in_time.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pace {
namespace {

constexpr int64_t kBatch = 12;
constexpr int64_t kBound = 9 * kBatch;
constexpr int64_t kWindow = JustInTimeSupply::kWindowSteps;

int64_t LimitOf(const SupplyPolicy& supply) {
  return supply.NumToStart(SupplyView{});
}

struct Step {
  int64_t num_pooled = kBatch;  // when the trainer became ready
  double waited = 0;            // share of the step
  bool supply_limited = true;
  int64_t num_running = kBatch;
  double throughput = 1000;  // tokens per second
};

void Finish(SupplyPolicy& supply, const Step& step) {
  SupplyView view;
  view.trainer = PolicyVersion(5);
  view.num_pooled = step.num_pooled;
  view.num_running = step.num_running;
  view.supply_limited = step.supply_limited;
  supply.OnGroupFinished(view);
  supply.OnTrainerReady(view, {.seconds = 10,
                               .waited = 10 * step.waited,
                               .num_tokens = static_cast<int64_t>(10 * step.throughput)});
}

// `count` steps in which the trainer waits half of the time. All but a batch of the groups run, and
// engines make `throughput(n)` tokens per second of n groups.
template <typename Throughput>
void Lack(SupplyPolicy& supply, int count, const Throughput& throughput) {
  for (int i = 0; i < count; ++i) {
    const int64_t num_running = LimitOf(supply) - kBatch;
    Finish(supply, {.num_pooled = 0,
                    .waited = 0.5,
                    .num_running = num_running,
                    .throughput = throughput(static_cast<double>(num_running))});
  }
}
double Proportional(double num_running) {
  return 100 * num_running;
}

// The first step, which waits for the first responses.
void FinishFirst(SupplyPolicy& supply) {
  SupplyView view;
  view.trainer = PolicyVersion(1);
  view.supply_limited = true;
  supply.OnTrainerReady(view, {.seconds = 10, .waited = 9});
}

// After its first step.
JustInTimeSupply Started() {
  JustInTimeSupply supply(kBatch, 1, kBound);
  FinishFirst(supply);
  return supply;
}

TEST(JustInTimeSupplyTest, StartsWithThreeBatchesSoThatTheFirstIsSoonFull) {
  EXPECT_EQ(LimitOf(JustInTimeSupply(kBatch, 1, kBound)), 3 * kBatch);
  EXPECT_EQ(LimitOf(JustInTimeSupply(kBatch, 3, 3 * kBound)), 9 * kBatch);
  EXPECT_EQ(LimitOf(JustInTimeSupply(kBatch, 1, kBatch)), kBatch);  // threshold 0: Sync
}

TEST(JustInTimeSupplyTest, TheFirstStepLeavesOneBatchInTrainingAndOneInGeneration) {
  JustInTimeSupply supply(kBatch, 1, kBound);
  FinishFirst(supply);
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
}

TEST(JustInTimeSupplyTest, GrowsByTheShareOfABatchThatTheTrainerWaited) {
  JustInTimeSupply supply = Started();
  Finish(supply, {.num_pooled = 4, .waited = 0.3});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch + 3);  // less the allowance
}

TEST(JustInTimeSupplyTest, AWaitWhileWorkersAreFullChangesNothing) {
  JustInTimeSupply supply = Started();
  for (int i = 0; i < 20; ++i)
    Finish(supply, {.num_pooled = 0, .waited = 0.5, .supply_limited = false});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
}

TEST(JustInTimeSupplyTest, ShortWaitsUseUpTheAllowance) {
  JustInTimeSupply supply = Started();
  for (int i = 0; i < 10; ++i) Finish(supply, {.num_pooled = kBatch - 1});
  Finish(supply, {.num_pooled = kBatch - 1, .waited = 0.1});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
  Finish(supply, {.num_pooled = kBatch - 1, .waited = 0.2});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch + 2);
}

TEST(JustInTimeSupplyTest, GrowsToTheBoundAsLongAsThroughputFollows) {
  JustInTimeSupply supply = Started();
  Lack(supply, 60, Proportional);
  EXPECT_EQ(LimitOf(supply), kBound);
}

// A short wait raises the limit by a single group; then the trainer becomes twice as fast.
TEST(JustInTimeSupplyTest, GrowthByOneGroupBeforeTheLoadRoseSetsNoCeiling) {
  JustInTimeSupply supply = Started();
  for (int i = 0; i < 10; ++i) Finish(supply, {});
  Finish(supply, {.num_pooled = kBatch - 1, .waited = 0.18});
  for (int i = 0; i < 3; ++i) Finish(supply, {});
  ASSERT_EQ(LimitOf(supply), 2 * kBatch + 1);
  Lack(supply, 60, Proportional);
  EXPECT_EQ(LimitOf(supply), kBound);
}

TEST(JustInTimeSupplyTest, WithoutTokensItGrowsAsLongAsTheTrainerWaits) {
  JustInTimeSupply supply = Started();
  Lack(supply, 60, [](double) { return 0.0; });
  EXPECT_EQ(LimitOf(supply), kBound);
}

TEST(JustInTimeSupplyTest, GrowthThatDoesNotPayIsTakenBack) {
  JustInTimeSupply supply = Started();
  int64_t largest = 0;
  for (int i = 0; i < 30; ++i) {
    Lack(supply, 1, [](double) { return 1000.0; });
    largest = std::max(largest, LimitOf(supply));
  }
  EXPECT_EQ(largest, 4 * kBatch);
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
  Lack(supply, 50, [](double) { return 1000.0; });
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
  // Another engine: throughput is larger at the same load, so growth is tried again.
  Lack(supply, 60, [](double n) { return 3 * Proportional(n); });
  EXPECT_EQ(LimitOf(supply), kBound);
}

// d ln X / d ln n = 1 / (1 + n / 12) is 0.2 at n = 48, under a limit of 60.
TEST(JustInTimeSupplyTest, StopsWhereGrowthCeasesToPay) {
  JustInTimeSupply supply = Started();
  Lack(supply, 60, [](double n) { return 1000 * n / (12 + n); });
  EXPECT_GT(LimitOf(supply), 48);
  EXPECT_LT(LimitOf(supply), 72);
}

TEST(JustInTimeSupplyTest, FullWorkersNeedNoMoreCreditsThanTheyRun) {
  JustInTimeSupply supply = Started();
  for (int i = 0; i < 60; ++i) {
    const int64_t num_running = std::min<int64_t>(LimitOf(supply) - kBatch, 20);
    Finish(supply, {.num_pooled = 0,
                    .waited = 0.5,
                    .supply_limited = LimitOf(supply) - kBatch <= 20,
                    .num_running = num_running,
                    .throughput = Proportional(static_cast<double>(num_running))});
  }
  EXPECT_GE(LimitOf(supply), 20 + kBatch);
  EXPECT_LE(LimitOf(supply), 20 + kBatch + kBatch / 2);
}

TEST(JustInTimeSupplyTest, TakesBackWhatEveryStepLeftOver) {
  JustInTimeSupply supply = Started();
  Lack(supply, 60, Proportional);
  ASSERT_EQ(LimitOf(supply), kBound);
  for (int64_t i = 0; i + 1 < kWindow; ++i) Finish(supply, {.num_pooled = kBatch + 40 + i % 2});
  EXPECT_EQ(LimitOf(supply), kBound);
  Finish(supply, {.num_pooled = kBatch + 40});
  EXPECT_LE(LimitOf(supply), kBound - 39);  // a spread of 1 is kept in reserve
  EXPECT_GE(LimitOf(supply), kBound - 40);
}

TEST(JustInTimeSupplyTest, AShortageForgetsWhatWasLeftOverBefore) {
  JustInTimeSupply supply = Started();
  Lack(supply, 60, Proportional);
  ASSERT_EQ(LimitOf(supply), kBound);
  for (int64_t i = 0; i < 3 * kWindow; ++i) {
    Finish(supply, {.num_pooled = i % kWindow == 0 ? kBatch - 1 : kBatch + 40});
  }
  EXPECT_GE(LimitOf(supply), kBound - 3);  // only the allowance
}

TEST(JustInTimeSupplyTest, WithoutWaitsItFallsToTheSmallestLimit) {
  JustInTimeSupply supply = Started();
  Lack(supply, 60, Proportional);
  ASSERT_EQ(LimitOf(supply), kBound);
  for (int i = 0; i < 2000; ++i) Finish(supply, {.num_pooled = kBatch - 1});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
}

TEST(JustInTimeSupplyTest, ARestoredPolicyGoesOnAsTheSavedOne) {
  JustInTimeSupply saved = Started();
  Lack(saved, 9, Proportional);
  for (int i = 0; i < 3; ++i) Finish(saved, {.num_pooled = kBatch + 7});
  JustInTimeSupply restored(kBatch, 1, kBound);
  ASSERT_TRUE(restored.Restore(saved.Save()).ok());
  for (int i = 0; i < 60; ++i) {
    const Step step{.num_pooled = kBatch + 9 - i % 13,
                    .waited = i % 3 == 1 ? 0.7 : 0,
                    .num_running = 20 + i % 5,
                    .throughput = 1000.0 + 10 * (i % 7)};
    for (JustInTimeSupply* supply : {&saved, &restored}) Finish(*supply, step);
    EXPECT_EQ(LimitOf(saved), LimitOf(restored)) << i;
  }
}

TEST(JustInTimeSupplyTest, AStateItCannotHaveIsRefused) {
  JustInTimeSupply supply = Started();
  EXPECT_EQ(supply.Restore({.limit = 23}).message(), "limit = 23: must be in [24, 108]");
  EXPECT_FALSE(supply.Restore({.limit = kBound + 1}).ok());
  EXPECT_FALSE(supply.Restore({.limit = 2 * kBatch, .owed = 1}).ok());
  EXPECT_FALSE(supply.Restore({.limit = 2 * kBatch, .balances = {1, 2, 3, 4, 5, 6}}).ok());
  EXPECT_FALSE(supply.Restore({.limit = 2 * kBatch, .wait = 1}).ok());
  EXPECT_FALSE(supply.Restore({.limit = 2 * kBatch, .sum_seconds = -1}).ok());
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
}

}  // namespace
}  // namespace pace
