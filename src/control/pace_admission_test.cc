#include "control/pace_admission.h"

#include <gtest/gtest.h>

#include <cmath>

#include "control/naive_pace.h"
#include "control/test_groups.h"

namespace pace {
namespace {

AdmissionOptions Options() {
  AdmissionOptions options;
  options.min_observations = 4;
  options.target_occupancy = 2;
  options.beta = 0;
  return options;
}

// One member, all tokens from one version, finished under `completed`.
TestGroup GroupAt(int64_t id, int64_t version, int64_t completed,
                  std::optional<double> prefix = std::nullopt) {
  TestGroup group;
  const std::vector<Segment> segments = {{PolicyVersion(version), 10}};
  group.members = {MemberSummary::Of(segments, PolicyVersion(completed), prefix)};
  group.summary = GroupSummary::Of(GroupId(id), PolicyVersion(completed), group.members, 1);
  return group;
}

void Observe(PaceAdmission& policy, const TestGroup& group) {
  policy.Observe(group.summary, policy.Judge(group.summary));
}

TEST(PaceAdmissionTest, AdmitsEverythingWhileWarmingUp) {
  PaceAdmission policy(Options(), 2, 1);
  const StepPlan plan = policy.BeginStep(PolicyVersion(5), {.occupancy = 100, .batch = 2});
  EXPECT_DOUBLE_EQ(*plan.budget, 0.9);
  EXPECT_FALSE(plan.cutoff.has_value());
  const TestGroup old = GroupAt(1, 0, 0);
  EXPECT_EQ(policy.Judge(old.summary).reason, Reason::kWarmingUp);
}

// Group means lie close together: in a window of them every member would seem extreme.
TEST(PaceAdmissionTest, MembersAreRankedAmongMembers) {
  AdmissionOptions options = Options();
  options.weight_scope = WeightScope::kMember;
  PaceAdmission policy(options, 2, 1);
  const std::vector<Segment> segments = {{PolicyVersion(4), 10}};
  const auto group = [&](int64_t id) {
    TestGroup made;
    for (const double prefix : {0.1, 0.2, 0.3, 0.4}) {
      made.members.push_back(MemberSummary::Of(segments, PolicyVersion(5), prefix));
    }
    made.summary = GroupSummary::Of(GroupId(id), PolicyVersion(5), made.members, 1);
    return made;
  };
  policy.BeginStep(PolicyVersion(5), {.occupancy = 8, .batch = 2});
  for (int64_t i = 0; i < 8; ++i) Observe(policy, group(i));
  policy.BeginStep(PolicyVersion(6), {.occupancy = 8, .batch = 2});
  const TestGroup next = group(9);
  const Decision decision = policy.Judge(next.summary);
  // Percentiles 1/4, 2/4, 3/4 and 1 of the members that were seen.
  EXPECT_DOUBLE_EQ(*decision.percentile, 0.625);
}

TEST(PaceAdmissionTest, WarmingUpTakesPrecedenceOverNoBudget) {
  PaceAdmission policy(Options(), 2, 1);
  policy.BeginStep(PolicyVersion(5), {.occupancy = 0, .batch = 2});
  EXPECT_EQ(policy.Judge(GroupAt(1, 0, 0).summary).reason, Reason::kWarmingUp);
}

TEST(PaceAdmissionTest, VerdictsWithinAStepDoNotDependOnTheOrderOfDraws) {
  PaceAdmission policy(Options(), 2, 1);
  policy.BeginStep(PolicyVersion(8), {.occupancy = 10, .batch = 2});
  for (int64_t i = 0; i < 8; ++i) Observe(policy, GroupAt(i, i, i));
  policy.BeginStep(PolicyVersion(9), {.occupancy = 10, .batch = 2});
  const TestGroup group = GroupAt(20, 4, 5);
  const Decision before = policy.Judge(group.summary);
  for (int64_t i = 0; i < 50; ++i) Observe(policy, GroupAt(30 + i, 0, 9));
  const Decision after = policy.Judge(group.summary);
  EXPECT_EQ(before.score, after.score);
  EXPECT_EQ(before.verdict, after.verdict);
}

TEST(PaceAdmissionTest, RejectsStrictlyAboveTheCutoff) {
  PaceAdmission policy(Options(), 2, 1);
  policy.BeginStep(PolicyVersion(4), {.occupancy = 4, .batch = 2});
  for (int64_t i = 0; i < 5; ++i) Observe(policy, GroupAt(i, i, i));  // scores 4 3 2 1 0
  const StepPlan plan = policy.BeginStep(PolicyVersion(5), {.occupancy = 4, .batch = 2});
  EXPECT_DOUBLE_EQ(*plan.budget, 0.5);
  EXPECT_DOUBLE_EQ(*plan.cutoff, 2.0);
  EXPECT_EQ(policy.Judge(GroupAt(10, 3, 3).summary).reason, Reason::kUnderCutoff);
  EXPECT_EQ(policy.Judge(GroupAt(11, 2, 2).summary).reason, Reason::kOverCutoff);
}

TEST(PaceAdmissionTest, FractionalTiesMeetTheBudget) {
  AdmissionOptions options = Options();
  options.ties = TieRule::kFractional;
  PaceAdmission policy(options, 2, 1);
  policy.BeginStep(PolicyVersion(1), {.occupancy = 4, .batch = 2});
  for (int64_t i = 0; i < 100; ++i) Observe(policy, GroupAt(i, 0, 0));  // all score 1
  const StepPlan plan = policy.BeginStep(PolicyVersion(2), {.occupancy = 4, .batch = 2});
  EXPECT_DOUBLE_EQ(plan.tie_probability, 0.5);
  int64_t num_rejected = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    num_rejected += policy.Judge(GroupAt(1000 + i, 1, 1).summary).verdict == Verdict::kReject;
  }
  EXPECT_NEAR(static_cast<double>(num_rejected) / 2000, 0.5, 0.04);
}

TEST(PaceAdmissionTest, StrictTiesRejectNothingWhenAllScoresAreEqual) {
  PaceAdmission policy(Options(), 2, 1);
  policy.BeginStep(PolicyVersion(1), {.occupancy = 4, .batch = 2});
  for (int64_t i = 0; i < 100; ++i) Observe(policy, GroupAt(i, 0, 0));
  policy.BeginStep(PolicyVersion(2), {.occupancy = 40, .batch = 2});
  EXPECT_EQ(policy.Judge(GroupAt(1000, 1, 1).summary).verdict, Verdict::kAdmit);
}

TEST(PaceAdmissionTest, ReserveLeavesThePoolWhatTheBatchNeeds) {
  AdmissionOptions options = Options();
  options.reserve_batch = true;
  options.target_occupancy = 0;
  PaceAdmission policy(options, 8, 1);
  EXPECT_DOUBLE_EQ(*policy.BeginStep(PolicyVersion(1), {.occupancy = 10, .batch = 8}).budget, 0.2);
  EXPECT_DOUBLE_EQ(*policy.BeginStep(PolicyVersion(2), {.occupancy = 4, .batch = 8}).budget, 0.0);
}

TEST(PaceAdmissionTest, UnscoredGroupsGetNoDiscount) {
  PaceAdmission policy(Options(), 2, 1);
  policy.BeginStep(PolicyVersion(4), {.occupancy = 4, .batch = 2});
  for (int64_t i = 0; i < 8; ++i) Observe(policy, GroupAt(i, 0, 4, 0.1 * static_cast<double>(i)));
  policy.BeginStep(PolicyVersion(5), {.occupancy = 4, .batch = 2});
  EXPECT_DOUBLE_EQ(policy.Judge(GroupAt(20, 0, 4).summary).weight, 1.0);
  EXPECT_DOUBLE_EQ(policy.Judge(GroupAt(21, 0, 4, 0.0).summary).weight,
                   SharpenedPercentile(0.125, 4));
  EXPECT_DOUBLE_EQ(policy.Judge(GroupAt(22, 0, 4, 9.0).summary).weight, 1.0);
}

TEST(SharpenedPercentileTest, RisesFromZeroThroughOneHalfToOne) {
  for (const double gamma : {0.5, 1.0, 2.0, 4.0, 16.0}) {
    EXPECT_DOUBLE_EQ(SharpenedPercentile(0, gamma), 0);
    EXPECT_DOUBLE_EQ(SharpenedPercentile(0.5, gamma), 0.5);
    EXPECT_DOUBLE_EQ(SharpenedPercentile(1, gamma), 1);
    double last = 0;
    for (int i = 1; i <= 100; ++i) {
      const double now = SharpenedPercentile(i / 100.0, gamma);
      EXPECT_GE(now, last);
      last = now;
    }
  }
  EXPECT_DOUBLE_EQ(SharpenedPercentile(0.3, 1), 0.3);
}

// A weight that is not a number would poison the window.
TEST(SharpenedPercentileTest, IsANumberForEveryGammaThatSettingsAllow) {
  AdmissionOptions options;
  for (const Field& field : options.Fields()) {
    if (field.key() != "gamma") continue;
    EXPECT_TRUE(field.Set(100.0, "gamma").ok());
    EXPECT_FALSE(field.Set(2000.0, "gamma").ok());
  }
  for (int i = 0; i <= 1000; ++i) {
    const double weight = SharpenedPercentile(i / 1000.0, options.gamma);
    EXPECT_GE(weight, 0);
    EXPECT_LE(weight, 1);
  }
}

AdmissionOptions RandomOptions(TestRandom& random) {
  AdmissionOptions options;
  options.target_occupancy = random.Below(30);
  options.beta = random.Chance(0.3) ? 0.0 : random.Unit();
  options.max_budget = random.Chance(0.2) ? 1.0 : random.Unit();
  options.reserve_batch = random.Chance(0.3);
  options.wait_weight = random.Chance(0.3) ? 0.0 : 1.0;
  options.wait_measure = static_cast<WaitMeasure>(random.Below(3));
  options.generation_weight = static_cast<GenerationWeight>(random.Below(3));
  options.gamma = 0.5 * static_cast<double>(1 + random.Below(10));
  options.unscored_weight = 0.25 * static_cast<double>(random.Below(5));
  options.weight_scope = static_cast<WeightScope>(random.Below(2));
  options.window = 1 + random.Below(60);
  options.min_observations = 1 + random.Below(12);
  options.ties = static_cast<TieRule>(random.Below(2));
  return options;
}

void ExpectSamePlan(const StepPlan& a, const StepPlan& b) {
  ASSERT_EQ(a.target_rate, b.target_rate);
  ASSERT_EQ(a.smoothed_rate, b.smoothed_rate);
  ASSERT_EQ(a.budget, b.budget);
  ASSERT_EQ(a.cutoff, b.cutoff);
  ASSERT_EQ(a.tie_probability, b.tie_probability);
}

void ExpectSameDecision(const Decision& a, const Decision& b) {
  ASSERT_EQ(a.waiting, b.waiting);
  ASSERT_EQ(a.generation, b.generation);
  ASSERT_EQ(a.prefix_score, b.prefix_score);
  ASSERT_EQ(a.percentile, b.percentile);
  ASSERT_EQ(a.weight, b.weight);
  ASSERT_EQ(a.score, b.score);
  ASSERT_EQ(a.reason, b.reason) << Name(a.reason) << " " << Name(b.reason);
  ASSERT_EQ(a.verdict, b.verdict);
}

// Random traces, windows and options agree with the naive reference exactly,
// also when the policy is saved and restored in between.
TEST(PaceAdmissionTest, AgreesWithTheNaiveReference) {
  int64_t num_rejected = 0, num_drawn = 0;
  for (uint64_t trial = 0; trial < 400; ++trial) {
    TestRandom random(trial);
    const AdmissionOptions options = RandomOptions(random);
    const int64_t batch = 1 + random.Below(16);
    auto policy = std::make_unique<PaceAdmission>(options, batch, trial);
    NaivePace naive(options, batch, trial);
    int64_t next_id = 0;
    for (int64_t step = 0; step < 25; ++step) {
      const int64_t occupancy = random.Below(60);
      ExpectSamePlan(policy->BeginStep(PolicyVersion(step), {occupancy, batch}),
                     naive.BeginStep(PolicyVersion(step), occupancy));
      const int64_t num_draws = random.Below(30);
      for (int64_t d = 0; d < num_draws; ++d) {
        if (random.Chance(0.01)) {
          auto restored = std::make_unique<PaceAdmission>(options, batch, trial);
          ASSERT_TRUE(restored->Restore(policy->Save()).ok());
          policy = std::move(restored);
        }
        const TestGroup group = RandomGroup(random, GroupId(next_id++), PolicyVersion(step));
        const Decision decision = policy->Judge(group.summary);
        policy->Observe(group.summary, decision);
        ExpectSameDecision(decision, naive.Draw(group.summary));
        if (HasFatalFailure()) FAIL() << "trial " << trial << " step " << step;
        num_rejected += decision.verdict == Verdict::kReject;
        ++num_drawn;
      }
    }
  }
  // The comparison covers both verdicts well.
  EXPECT_GT(num_rejected, num_drawn / 20);
  EXPECT_LT(num_rejected, num_drawn * 19 / 20);
}

TEST(PaceAdmissionTest, RefusesASnapshotWithImpossibleNumbers) {
  PaceAdmission policy(Options(), 2, 1);
  AdmissionState state = policy.Save();
  state.scores = {1, std::nan("")};
  EXPECT_FALSE(policy.Restore(state).ok());
  state.scores = {-1};
  EXPECT_FALSE(policy.Restore(state).ok());
  state.scores = {};
  state.smoothed_rate = 1.5;
  EXPECT_FALSE(policy.Restore(state).ok());
}

}  // namespace
}  // namespace pace
