#include "control/just_in_time.h"

#include <gtest/gtest.h>

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
};

void Finish(SupplyPolicy& supply, const Step& step) {
  SupplyView view;
  view.trainer = PolicyVersion(5);
  view.num_pooled = step.num_pooled;
  view.supply_limited = step.supply_limited;
  supply.OnTrainerReady(view, {.seconds = 10, .waited = 10 * step.waited});
}

// `count` groups finish while `num_running` groups run and a token takes `seconds`.
void FinishGroups(SupplyPolicy& supply, int64_t count, int64_t num_running, double seconds) {
  SupplyView view;
  view.num_running = num_running;
  for (int64_t i = 0; i < count; ++i) {
    supply.OnGroupFinished(view, {.seconds = 100 * seconds, .num_tokens = 100});
  }
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
  Finish(supply, {.num_pooled = 4, .waited = 0.51});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch + 6);  // less the allowance
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

// As a run that needs three more batches: doubled once, and doubled again since that paid.
void GrowTo(JustInTimeSupply& supply, int64_t limit) {
  int64_t num_running = kBatch;
  while (LimitOf(supply) < limit) {
    FinishGroups(supply, 40 * kBatch, num_running, /*seconds=*/1);
    Finish(supply, {.num_pooled = 0, .waited = 1});
    num_running = LimitOf(supply) - kBatch;
  }
}

TEST(JustInTimeSupplyTest, GrowsToTheBoundAsLongAsThroughputFollows) {
  JustInTimeSupply supply(kBatch, 1, kBound);
  GrowTo(supply, kBound);
  EXPECT_EQ(LimitOf(supply), kBound);
}

TEST(JustInTimeSupplyTest, GrowthThatDoesNotPayIsTakenBack) {
  JustInTimeSupply supply = Started();
  FinishGroups(supply, 10 * kBatch, kBatch, /*seconds=*/1);
  Finish(supply, {.num_pooled = 0, .waited = 0.5});
  for (int i = 0; i < 10; ++i) Finish(supply, {.num_pooled = 0, .waited = 0.5});
  EXPECT_EQ(LimitOf(supply), 4 * kBatch);
  // Three times as many run, and each token takes three times as long.
  FinishGroups(supply, 10 * kBatch, 3 * kBatch, /*seconds=*/3);
  Finish(supply, {.num_pooled = 0, .waited = 0.5});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
  for (int i = 0; i < 50; ++i) Finish(supply, {.num_pooled = 0, .waited = 0.5});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
  // Another engine: responses are faster at the same load, so growth is tried again.
  FinishGroups(supply, 10 * kBatch, kBatch, /*seconds=*/0.5);
  Finish(supply, {.num_pooled = 0, .waited = 0.5});
  EXPECT_GT(LimitOf(supply), 2 * kBatch);
}

TEST(JustInTimeSupplyTest, TakesBackWhatEveryStepLeftOver) {
  JustInTimeSupply supply(kBatch, 1, kBound);
  GrowTo(supply, kBound);
  for (int64_t i = 0; i + 1 < kWindow; ++i) Finish(supply, {.num_pooled = kBatch + 40 + i % 2});
  EXPECT_EQ(LimitOf(supply), kBound);
  Finish(supply, {.num_pooled = kBatch + 40});
  EXPECT_LE(LimitOf(supply), kBound - 39);  // a spread of 1 is kept in reserve
  EXPECT_GE(LimitOf(supply), kBound - 40);
}

TEST(JustInTimeSupplyTest, AShortageForgetsWhatWasLeftOverBefore) {
  JustInTimeSupply supply(kBatch, 1, kBound);
  GrowTo(supply, kBound);
  for (int64_t i = 0; i < 3 * kWindow; ++i) {
    Finish(supply, {.num_pooled = i % kWindow == 0 ? kBatch - 1 : kBatch + 40});
  }
  EXPECT_GE(LimitOf(supply), kBound - 3);  // only the allowance
}

TEST(JustInTimeSupplyTest, WithoutWaitsItFallsToTheSmallestLimit) {
  JustInTimeSupply supply(kBatch, 1, kBound);
  GrowTo(supply, kBound);
  for (int i = 0; i < 2000; ++i) Finish(supply, {.num_pooled = kBatch - 1});
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
}

TEST(JustInTimeSupplyTest, ARestoredPolicyGoesOnAsTheSavedOne) {
  JustInTimeSupply saved(kBatch, 1, kBound);
  GrowTo(saved, 5 * kBatch);
  for (int i = 0; i < 3; ++i) Finish(saved, {.num_pooled = kBatch + 7});
  JustInTimeSupply restored(kBatch, 1, kBound);
  ASSERT_TRUE(restored.Restore(saved.Save()).ok());
  for (int i = 0; i < 40; ++i) {
    const Step step{.num_pooled = kBatch + 9 - i % 13, .waited = i % 7 == 3 ? 0.4 : 0};
    for (JustInTimeSupply* supply : {&saved, &restored}) {
      FinishGroups(*supply, 30, 20 + i, 1 + 0.1 * i);
      Finish(*supply, step);
    }
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
  EXPECT_FALSE(supply.Restore({.limit = 2 * kBatch, .seconds = -1}).ok());
  EXPECT_EQ(LimitOf(supply), 2 * kBatch);
}

}  // namespace
}  // namespace pace
