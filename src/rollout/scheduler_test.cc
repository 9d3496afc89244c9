#include "rollout/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "rollout/block_pool.h"

namespace pace {
namespace {

// Members that end when they have generated their share.
class Passes {
 public:
  explicit Passes(const SchedulerOptions& options) : scheduler(options) {}

  std::vector<MemberSlot> Add(int64_t num_prompt, int64_t num_generated, int64_t num_members = 1,
                              std::vector<int64_t> resumed = {}) {
    resumed.resize(static_cast<size_t>(num_members), 0);
    const auto slots = scheduler.Add(num_prompt, num_generated, resumed);
    EXPECT_TRUE(slots.ok()) << slots.status().message();
    for (size_t i = 0; i < slots->size(); ++i) left_[slots->at(i)] = num_generated - resumed[i];
    return *slots;
  }

  // One pass; a copy of its plan, whose block spans are gone.
  PassPlan Step() {
    const PassPlan& plan = scheduler.Next();
    PassPlan copy = plan;
    if (plan.empty()) return copy;
    std::vector<RowEnd> ends;
    for (const PlannedChunk& chunk : plan.chunks) {
      if (chunk.reaches_end) {
        ends.push_back(--left_.at(chunk.slot) == 0 ? RowEnd::kEnds : RowEnd::kGrows);
      }
      num_rows += chunk.num_tokens;
    }
    for (PlannedChunk& chunk : copy.chunks) chunk.blocks = {};
    num_preempted += static_cast<int64_t>(plan.preempted.size());
    scheduler.Commit(ends);
    scheduler.CheckInvariants();
    return copy;
  }
  // Until nothing is left; how many passes that took.
  int64_t Finish(int64_t max_passes = 100000) {
    int64_t num_passes = 0;
    while (scheduler.num_unfinished() > 0 && num_passes < max_passes) {
      EXPECT_FALSE(Step().empty());
      ++num_passes;
    }
    EXPECT_EQ(scheduler.num_unfinished(), 0) << "no progress";
    return num_passes;
  }

  Scheduler scheduler;
  int64_t num_rows = 0;
  int64_t num_preempted = 0;

 private:
  std::map<MemberSlot, int64_t> left_;  // tokens until it ends
};

int64_t RowsOf(const PassPlan& plan) {
  int64_t num_rows = 0;
  for (const PlannedChunk& chunk : plan.chunks) num_rows += chunk.num_tokens;
  return num_rows;
}

TEST(SchedulerTest, AGroupsPromptIsComputedOnce) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 100});
  passes.Add(/*num_prompt=*/40, /*num_generated=*/1, /*num_members=*/8);
  const PassPlan prefill = passes.Step();
  ASSERT_EQ(prefill.chunks.size(), 1u);
  EXPECT_TRUE(prefill.chunks[0].is_shared_prompt);
  EXPECT_EQ(prefill.chunks[0].num_tokens, 39);
  EXPECT_TRUE(prefill.copies.empty());
  const PassPlan decode = passes.Step();
  EXPECT_EQ(decode.chunks.size(), 8u);
  // 39 tokens are two whole blocks and a partial one, which each member copies.
  EXPECT_EQ(decode.copies.size(), 8u);
  EXPECT_EQ(RowsOf(decode), 8);
  EXPECT_EQ(passes.num_rows, 39 + 8);
  EXPECT_EQ(passes.scheduler.num_free_blocks(), 100);
}

TEST(SchedulerTest, MembersShareWholeBlocksAndOwnTheRest) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 100});
  passes.Add(33, 10, 4);  // a prefix of exactly two blocks
  passes.Step();
  EXPECT_TRUE(passes.Step().copies.empty());
  EXPECT_EQ(passes.scheduler.num_free_blocks(), 100 - 2 - 4);
}

TEST(SchedulerTest, AMemberAloneRunsItsPromptInOnePass) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 100});
  passes.Add(40, 1);
  const PassPlan plan = passes.Step();
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_FALSE(plan.chunks[0].is_shared_prompt);
  EXPECT_TRUE(plan.chunks[0].reaches_end);
  EXPECT_EQ(plan.chunks[0].num_tokens, 40);
  EXPECT_EQ(passes.scheduler.num_unfinished(), 0);
}

TEST(SchedulerTest, TheLastOfAGroupNeedsNoPrefix) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 100});
  const auto slots = passes.Add(40, 9, 2);
  passes.Step();
  passes.scheduler.Cancel(slots[0]);
  passes.scheduler.InvalidateCache();
  const PassPlan plan = passes.Step();
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_FALSE(plan.chunks[0].is_shared_prompt);
  EXPECT_EQ(plan.chunks[0].num_tokens, 40);
}

TEST(SchedulerTest, APassHoldsDecodingRowsFirstThenChunksUpToTheLimit) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 16});
  passes.Add(4, 50);
  passes.Step();
  passes.Add(40, 1);
  for (const int64_t expected : {15, 15, 10}) {
    const PassPlan plan = passes.Step();
    ASSERT_EQ(plan.chunks.size(), 2u);
    EXPECT_EQ(plan.chunks[0].num_tokens, 1);
    EXPECT_EQ(plan.chunks[1].num_tokens, expected);
    EXPECT_EQ(plan.chunks[1].reaches_end, expected == 10);
  }
}

TEST(SchedulerTest, DecodingNeverLacksRowsAndCatchingUpAlwaysGetsAQuarter) {
  Passes passes({.num_blocks = 1000, .max_pass_tokens = 32});
  passes.Add(1, 1000, 60);
  for (int i = 0; i < 5; ++i) passes.Step();
  EXPECT_EQ(passes.scheduler.num_running(), 24);
  passes.scheduler.InvalidateCache();
  bool rebuilt = false;
  while (!rebuilt) {
    const PassPlan plan = passes.Step();
    EXPECT_LE(RowsOf(plan), 32);
    int64_t num_decoding = 0;
    for (const PlannedChunk& chunk : plan.chunks) {
      if (chunk.num_tokens == 1 && chunk.reaches_end) ++num_decoding;
    }
    rebuilt = num_decoding == 24;
    EXPECT_TRUE(rebuilt || RowsOf(plan) >= 8);
  }
}

TEST(SchedulerTest, TheYoungestIsPreemptedAndNothingIsLost) {
  Passes passes({.num_blocks = 6, .max_pass_tokens = 64});
  const MemberSlot old = passes.Add(16, 65)[0];  // five blocks at its longest
  const MemberSlot young = passes.Add(30, 20)[0];
  std::vector<MemberSlot> preempted;
  while (preempted.empty()) preempted = passes.Step().preempted;
  EXPECT_EQ(preempted, std::vector<MemberSlot>{young});
  EXPECT_EQ(passes.scheduler.num_running(), 1);
  const PassPlan plan = passes.Step();
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.chunks[0].slot, old);
  passes.Finish();
}

TEST(SchedulerTest, PreemptionsAreRareBecauseStartingLeavesRoomToGrow) {
  Passes passes({.num_blocks = 256, .max_pass_tokens = 256});
  for (int64_t i = 0; i < 100; ++i) passes.Add(30, 150 + i * 37 % 150);
  passes.Finish();
  // Each computes a context again. Without that room there are three times as many.
  EXPECT_GT(passes.num_preempted, 0);
  EXPECT_LT(passes.num_preempted, 100);
}

TEST(SchedulerTest, NobodyOvertakesTheFirstToWait) {
  Passes passes({.num_blocks = 8, .max_pass_tokens = 64});
  passes.Add(64, 17);
  passes.Step();
  const MemberSlot large = passes.Add(96, 2)[0];
  const MemberSlot small = passes.Add(2, 2)[0];
  std::vector<MemberSlot> order;
  while (passes.scheduler.num_unfinished() > 0) {
    for (const PlannedChunk& chunk : passes.Step().chunks) {
      if (std::find(order.begin(), order.end(), chunk.slot) == order.end()) {
        order.push_back(chunk.slot);
      }
    }
  }
  EXPECT_EQ(order[1], large);
  EXPECT_EQ(order[2], small);
}

TEST(SchedulerTest, AGroupThatCouldNotRunAloneIsRefused) {
  Scheduler scheduler({.num_blocks = 4, .max_pass_tokens = 8});
  const std::vector<int64_t> one(1), two(2);
  EXPECT_TRUE(scheduler.Add(32, 33, one).ok());   // 64 tokens to run: four blocks
  EXPECT_FALSE(scheduler.Add(32, 34, one).ok());  // one more
  EXPECT_FALSE(scheduler.Add(32, 33, two).ok());  // and the prefix's partial block
  EXPECT_TRUE(scheduler.Add(33, 32, two).ok());   // which here is none
  EXPECT_EQ(scheduler.num_unfinished(), 3);
  scheduler.CheckInvariants();
}

TEST(SchedulerTest, AnIdlePrefixIsKeptUntilItsBlocksAreNeeded) {
  Passes passes({.num_blocks = 8, .max_pass_tokens = 64, .max_running = 1});
  const auto group = passes.Add(33, 2, 2);
  passes.Step();
  passes.Step();
  passes.scheduler.Cancel(group[0]);
  passes.scheduler.CheckInvariants();
  EXPECT_EQ(passes.scheduler.num_free_blocks(), 6);
  const PassPlan plan = passes.Step();
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.chunks[0].slot, group[1]);
  EXPECT_EQ(plan.chunks[0].start, 32);  // on the prefix that was there
}

TEST(SchedulerTest, AMemberStartsOnItsOwnIdlePrefixAndAnotherOneGoes) {
  Passes passes({.num_blocks = 6, .max_pass_tokens = 64, .max_running = 1});
  passes.scheduler.set_hold_new(true);
  const auto older = passes.Add(33, 50, 2, {0, 40});
  passes.scheduler.set_hold_new(false);
  passes.Step();
  passes.scheduler.Cancel(older[0]);
  const auto younger = passes.Add(33, 3, 2, {1, 1});
  passes.scheduler.set_hold_new(true);
  passes.Step();
  passes.scheduler.Cancel(younger[0]);
  passes.scheduler.set_hold_new(false);
  EXPECT_EQ(passes.scheduler.num_free_blocks(), 2);  // both prefixes are idle
  const PassPlan plan = passes.Step();
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.chunks[0].slot, older[1]);
  EXPECT_EQ(plan.chunks[0].start, 32);
  passes.Finish();
}

TEST(SchedulerTest, NewAndResumedMembersStandInOneLine) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 64, .max_running = 1});
  std::vector<MemberSlot> expected, order;
  for (int64_t i = 0; i < 4; ++i) expected.push_back(passes.Add(4, 2, 1, {i % 2})[0]);
  while (passes.scheduler.num_unfinished() > 0) {
    const MemberSlot slot = passes.Step().chunks[0].slot;
    if (order.empty() || order.back() != slot) order.push_back(slot);
  }
  EXPECT_EQ(order, expected);
}

TEST(SchedulerTest, AnInvalidatedCacheIsComputedAgainInTheOldOrder) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 64});
  const auto group = passes.Add(20, 10, 2);
  const MemberSlot single = passes.Add(5, 10)[0];
  for (int i = 0; i < 4; ++i) passes.Step();
  passes.scheduler.InvalidateCache();
  passes.scheduler.CheckInvariants();
  EXPECT_EQ(passes.scheduler.num_free_blocks(), 100);
  EXPECT_EQ(passes.scheduler.num_started(), 3);

  const PassPlan prefix = passes.Step();
  ASSERT_EQ(prefix.chunks.size(), 2u);
  EXPECT_TRUE(prefix.chunks[0].is_shared_prompt);
  EXPECT_EQ(prefix.chunks[0].num_reprefilled, 19);
  EXPECT_EQ(prefix.chunks[1].slot, single);
  EXPECT_EQ(prefix.chunks[1].num_reprefilled, prefix.chunks[1].num_tokens - 1);
  const PassPlan members = passes.Step();
  ASSERT_EQ(members.chunks.size(), 3u);
  EXPECT_EQ(members.chunks[0].slot, single);  // decodes already
  EXPECT_EQ(members.chunks[0].num_reprefilled, 0);
  EXPECT_EQ(members.chunks[1].slot, group[0]);
  EXPECT_EQ(members.chunks[1].start, 19);
  EXPECT_EQ(members.chunks[1].num_reprefilled, members.chunks[1].num_tokens - 1);
  for (const PlannedChunk& chunk : passes.Step().chunks) EXPECT_EQ(chunk.num_reprefilled, 0);
}

TEST(SchedulerTest, AFailedPassIsRunAgain) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 64});
  passes.Add(20, 3, 2);
  passes.Step();
  passes.scheduler.Next();
  passes.scheduler.Abandon();
  passes.scheduler.CheckInvariants();
  EXPECT_EQ(passes.scheduler.num_free_blocks(), 100);
  EXPECT_EQ(passes.Finish(), 1 + 3);
}

TEST(SchedulerTest, OnHoldOnlyWhatHasBegunRuns) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 64});
  passes.Add(4, 3);
  passes.Add(4, 3, 1, {1});  // resumed
  passes.Step();
  passes.Add(4, 3);
  passes.scheduler.set_hold_new(true);
  passes.Add(4, 3, 1, {1});  // resumed, but it came after the hold
  EXPECT_EQ(passes.scheduler.num_started(), 2);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(passes.Step().empty());
  EXPECT_EQ(passes.scheduler.num_started(), 0);
  EXPECT_EQ(passes.scheduler.num_unfinished(), 2);
  EXPECT_TRUE(passes.Step().empty());
  passes.scheduler.set_hold_new(false);
  passes.Finish();
}

TEST(SchedulerTest, AMemberThatWasOnHoldTakesItsOldPlace) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 64});
  passes.scheduler.set_hold_new(true);
  const MemberSlot held = passes.Add(4, 5)[0];
  passes.scheduler.set_hold_new(false);
  const MemberSlot resumed = passes.Add(4, 5, 1, {1})[0];
  passes.scheduler.set_hold_new(true);
  EXPECT_EQ(passes.Step().chunks[0].slot, resumed);
  passes.scheduler.set_hold_new(false);
  passes.Step();
  EXPECT_EQ(passes.Step().chunks[0].slot, held);
  passes.Finish();
}

TEST(SchedulerTest, MaxRunningBoundsTheMembersThatHoldBlocks) {
  Passes passes({.num_blocks = 100, .max_pass_tokens = 64, .max_running = 3});
  passes.Add(4, 5, 8);
  while (passes.scheduler.num_unfinished() > 0) {
    passes.Step();
    EXPECT_LE(passes.scheduler.num_running(), 3);
  }
}

TEST(SchedulerTest, TinyMemoryAndManyMembersAlwaysComeToAnEnd) {
  std::mt19937 bits(3);
  const auto between = [&bits](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 200; ++round) {
    const int64_t num_blocks = between(5, 9);
    Passes passes({.num_blocks = num_blocks, .max_pass_tokens = between(1, 40)});
    for (int64_t group = between(1, 12); group > 0; --group) {
      const int64_t num_prompt = between(1, 30);
      passes.Add(num_prompt, between(1, 64 - num_prompt), between(1, 6));
    }
    passes.Finish();
    EXPECT_EQ(passes.scheduler.num_free_blocks(), num_blocks);
  }
}

TEST(SchedulerTest, OptionsAreChecked) {
  EXPECT_FALSE(SchedulerOptions{.num_blocks = 0}.Validate().ok());
  EXPECT_FALSE(SchedulerOptions({.num_blocks = 1, .max_pass_tokens = 0}).Validate().ok());
  EXPECT_FALSE(
      SchedulerOptions({.num_blocks = 1, .max_pass_tokens = 1, .max_running = -1}).Validate().ok());
}

TEST(SchedulerDeathTest, APlanEndsBeforeAnythingElse) {
  Scheduler scheduler({.num_blocks = 4, .max_pass_tokens = 8});
  const auto slots = scheduler.Add(4, 4, std::vector<int64_t>(1));
  ASSERT_TRUE(slots.ok());
  ASSERT_FALSE(scheduler.Next().empty());
  EXPECT_DEATH(scheduler.Next(), "waits for its commit");
  EXPECT_DEATH(scheduler.Cancel(slots->at(0)), "waits for its commit");
  EXPECT_DEATH(scheduler.Commit(std::vector(2, RowEnd::kEnds)), "results for");
}

}  // namespace
}  // namespace pace
