#include "control/pool_admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "control/test_groups.h"

namespace pace {
namespace {

constexpr int64_t kBatchSize = 12;

// Groups that finished in these versions, drawn at `step`: their score is what they waited.
struct TestPool {
  std::vector<TestGroup> groups;
  std::vector<GroupSummary> summaries;

  void Add(int64_t id, int64_t version) {
    TestGroup group;
    VersionRuns runs;
    runs.Append(PolicyVersion(version), 4);
    group.members.push_back(
        MemberSummary::Of(runs.segments(), PolicyVersion(version), std::nullopt));
    group.summary =
        GroupSummary::Of(GroupId(id), PolicyVersion(version), group.members, /*num_bytes=*/1);
    groups.push_back(std::move(group));
    summaries.push_back(groups.back().summary);
  }
  PoolView View(PolicyVersion served) const {
    return {.occupancy = static_cast<int64_t>(summaries.size()),
            .batch = kBatchSize,
            .groups = summaries,
            .served = served};
  }
};

AdmissionOptions WithoutMemory() {
  AdmissionOptions options;
  options.cutoff = CutoffRule::kPool;
  options.beta = 0;
  return options;
}

TEST(PoolAdmissionTest, RejectsTheStalestGroupsBeyondTheTarget) {
  TestPool pool;
  for (int64_t i = 0; i < 15; ++i) pool.Add(i, /*version=*/20 - i % 5);
  PoolAdmission policy(WithoutMemory(), kBatchSize);
  const StepPlan plan = policy.BeginStep(PolicyVersion(20), pool.View(PolicyVersion(20)));
  // 15 groups, 12 wanted: the three that waited four steps.
  EXPECT_DOUBLE_EQ(*plan.budget, 3.0 / 15);
  EXPECT_EQ(std::vector<GroupId>(policy.Chosen().begin(), policy.Chosen().end()),
            (std::vector<GroupId>{GroupId(4), GroupId(9), GroupId(14)}));
  EXPECT_EQ(policy.Judge(pool.summaries[4]).reason, Reason::kTieRejected);
  EXPECT_EQ(policy.Judge(pool.summaries[3]).reason, Reason::kUnderCutoff);
  EXPECT_EQ(policy.Judge(pool.summaries[3]).verdict, Verdict::kAdmit);
}

TEST(PoolAdmissionTest, NeedsNoWarmUp) {
  TestPool pool;
  for (int64_t i = 0; i < 24; ++i) pool.Add(i, /*version=*/0);
  PoolAdmission policy(WithoutMemory(), kBatchSize);
  policy.BeginStep(PolicyVersion(1), pool.View(PolicyVersion(1)));
  EXPECT_EQ(policy.Chosen().size(), 12u);
}

TEST(PoolAdmissionTest, OfEqualScoresTheOldestGroupsLeave) {
  TestPool pool;
  for (int64_t i = 0; i < 14; ++i) pool.Add(i, /*version=*/7);
  PoolAdmission policy(WithoutMemory(), kBatchSize);
  policy.BeginStep(PolicyVersion(9), pool.View(PolicyVersion(9)));
  EXPECT_EQ(std::vector<GroupId>(policy.Chosen().begin(), policy.Chosen().end()),
            (std::vector<GroupId>{GroupId(0), GroupId(1)}));
}

TEST(PoolAdmissionTest, LeavesTheBatchAndWhatNothingFresherCanReplace) {
  TestPool pool;
  for (int64_t i = 0; i < 10; ++i) pool.Add(i, /*version=*/0);
  AdmissionOptions options = WithoutMemory();
  options.target_occupancy = 0;  // would reject all of them
  PoolAdmission policy(options, kBatchSize);
  EXPECT_EQ(policy.BeginStep(PolicyVersion(5), pool.View(PolicyVersion(5))).budget, 0.0);
  EXPECT_EQ(policy.Judge(pool.summaries[0]).reason, Reason::kNoBudget);
  for (int64_t i = 10; i < 40; ++i) pool.Add(i, /*version=*/5);
  policy.BeginStep(PolicyVersion(5), pool.View(PolicyVersion(5)));
  EXPECT_EQ(policy.Chosen().size(), 10u);  // the other thirty are as fresh as can be
}

TEST(PoolAdmissionTest, AGroupThatFinishesDuringTheStepIsAdmitted) {
  TestPool pool;
  for (int64_t i = 0; i < 20; ++i) pool.Add(i, /*version=*/6);
  PoolAdmission policy(WithoutMemory(), kBatchSize);
  policy.BeginStep(PolicyVersion(8), pool.View(PolicyVersion(8)));
  TestPool late;
  late.Add(77, /*version=*/1);
  const Decision decision = policy.Judge(late.summaries[0]);
  EXPECT_EQ(decision.verdict, Verdict::kAdmit);
  EXPECT_EQ(decision.reason, Reason::kQuotaSpent);
}

// Against the rule written down plainly, over random pools in a row.
TEST(PoolAdmissionTest, EqualsTheRuleWrittenDownPlainly) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    TestRandom random(seed);
    AdmissionOptions options;
    options.cutoff = CutoffRule::kPool;
    options.beta = random.Chance(0.3) ? 0.0 : 0.8;
    options.max_budget = 0.5 + 0.5 * random.Unit();
    options.target_occupancy = random.Below(20);
    options.generation_weight = static_cast<GenerationWeight>(random.Below(3));
    PoolAdmission policy(options, kBatchSize);
    double smoothed = 0;
    for (int64_t step = 1; step < 12; ++step) {
      TestPool pool;
      const int64_t size = random.Below(60);
      for (int64_t i = 0; i < size; ++i) {
        pool.groups.push_back(RandomGroup(random, GroupId(100 * step + i), PolicyVersion(step)));
      }
      for (const TestGroup& group : pool.groups) pool.summaries.push_back(group.summary);
      const PolicyVersion served(std::max<int64_t>(0, step - random.Below(3)));
      const StepPlan plan = policy.BeginStep(PolicyVersion(step), pool.View(served));

      const double n = std::max<double>(1, static_cast<double>(size));
      const double rate = std::clamp(
          (static_cast<double>(size) - static_cast<double>(*options.target_occupancy)) / n, 0.0,
          1.0);
      smoothed = options.beta * smoothed + (1 - options.beta) * rate;
      std::vector<std::pair<double, int64_t>> order;
      for (const GroupSummary& group : pool.summaries) {
        const bool fresh =
            group.LagAt(PolicyVersion(step)) <= static_cast<double>(step - served.step());
        if (!fresh) order.emplace_back(-policy.Score(group), group.id.value());
      }
      std::sort(order.begin(), order.end());
      const double wanted = std::min(smoothed, options.max_budget);
      int64_t quota = 0;  // the most rejections that stay within the budget and the pool
      while (quota < static_cast<int64_t>(order.size()) && quota + 1 + kBatchSize <= size &&
             static_cast<double>(quota + 1) <=
                 wanted * static_cast<double>(quota + 1 + kBatchSize) + 1e-9) {
        ++quota;
      }
      std::vector<GroupId> expected;
      for (int64_t i = 0; i < quota; ++i) {
        expected.emplace_back(order[static_cast<size_t>(i)].second);
      }
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(std::vector<GroupId>(policy.Chosen().begin(), policy.Chosen().end()), expected)
          << "seed " << seed << ", step " << step;
      const double draws = static_cast<double>(quota + kBatchSize);
      EXPECT_LE(std::abs(static_cast<double>(quota) - *plan.budget * draws), 1.0);
    }
  }
}

TEST(PoolAdmissionTest, ARestoredPolicyGoesOnAsTheSavedOne) {
  AdmissionOptions options = WithoutMemory();
  options.beta = 0.9;
  PoolAdmission saved(options, kBatchSize);
  TestPool pool;
  for (int64_t i = 0; i < 60; ++i) pool.Add(i, /*version=*/i % 7);
  for (int64_t step = 7; step < 12; ++step) {
    saved.BeginStep(PolicyVersion(step), pool.View(PolicyVersion(step)));
  }
  PoolAdmission restored(options, kBatchSize);
  ASSERT_TRUE(restored.Restore(saved.Save()).ok());
  const PoolView view = pool.View(PolicyVersion(12));
  EXPECT_EQ(saved.BeginStep(PolicyVersion(12), view).budget,
            restored.BeginStep(PolicyVersion(12), view).budget);
  EXPECT_TRUE(std::ranges::equal(saved.Chosen(), restored.Chosen()));
  AdmissionState broken = saved.Save();
  broken.smoothed_rate = 2;
  EXPECT_EQ(restored.Restore(broken).message(), "smoothed_rate = 2: must be in [0, 1]");
}

}  // namespace
}  // namespace pace
