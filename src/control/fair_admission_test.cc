#include "control/fair_admission.h"

#include <gtest/gtest.h>

#include <cmath>

#include "control/test_groups.h"

namespace pace {
namespace {

AdmissionOptions FairOptions() {
  AdmissionOptions options;
  options.policy = AdmissionKind::kPaceFair;
  options.beta = 0;
  return options;
}

// One response; long ones are stale, as they are in practice.
TestGroup GroupOf(TestRandom& random, int64_t id, int64_t step) {
  TestGroup group;
  const int64_t length = 1 + random.Below(100);
  const int64_t lag = std::min(step, length / 20 + random.Below(3));
  const std::vector<Segment> segments = {{PolicyVersion(step - lag), length}};
  group.members = {MemberSummary::Of(segments, PolicyVersion(step - lag / 2), std::nullopt)};
  group.summary = GroupSummary::Of(GroupId(id), PolicyVersion(step - lag / 2), group.members, 1);
  return group;
}

struct Outcome {
  double trained_over_offered = 0;  // mean length
  double rejected = 0;              // share of the draws, in the second half
};

Outcome Play(AdmissionPolicy& policy) {
  TestRandom random(11);
  double offered = 0, trained = 0, num_offered = 0, num_trained = 0;
  int64_t id = 0;
  for (int64_t step = 0; step < 120; ++step) {
    policy.BeginStep(PolicyVersion(step), {.occupancy = 24, .batch = 12});
    for (int64_t draw = 0; draw < 24; ++draw) {
      const TestGroup group = GroupOf(random, id++, step);
      const Decision decision = policy.Judge(group.summary);
      policy.Observe(group.summary, decision);
      if (step < 60) continue;
      const auto length = static_cast<double>(group.summary.num_tokens);
      offered += length;
      num_offered += 1;
      if (decision.verdict == Verdict::kReject) continue;
      trained += length;
      num_trained += 1;
    }
  }
  return {(trained / num_trained) / (offered / num_offered), 1 - num_trained / num_offered};
}

TEST(FairAdmissionTest, TrainsOnResponsesAsLongAsThoseOffered) {
  FairAdmission fair(FairOptions(), 12, 1);
  const Outcome even = Play(fair);
  EXPECT_NEAR(even.trained_over_offered, 1, 0.08);
  EXPECT_NEAR(even.rejected, 0.5, 0.03);  // the budget, 1 - 12/24
  AdmissionOptions options = FairOptions();
  options.ties = TieRule::kFractional;
  PaceAdmission pace(options, 12, 1);
  const Outcome biased = Play(pace);
  EXPECT_LT(biased.trained_over_offered, 0.7);
  EXPECT_NEAR(biased.rejected, even.rejected, 0.03);
}

TEST(FairAdmissionTest, WithOneStratumItIsPaceWithFractionalTies) {
  AdmissionOptions options = FairOptions();
  options.num_strata = 1;
  options.wait_measure = WaitMeasure::kAll;
  FairAdmission fair(options, 12, 5);
  options.ties = TieRule::kFractional;
  PaceAdmission pace(options, 12, 5);
  TestRandom random(2);
  int64_t id = 0;
  for (int64_t step = 0; step < 40; ++step) {
    const PoolView pool{.occupancy = random.Below(60), .batch = 12};
    const StepPlan a = fair.BeginStep(PolicyVersion(step), pool);
    const StepPlan b = pace.BeginStep(PolicyVersion(step), pool);
    EXPECT_EQ(a.cutoff, b.cutoff);
    EXPECT_EQ(a.tie_probability, b.tie_probability);
    for (int64_t draw = 0; draw < 20; ++draw) {
      const TestGroup group = RandomGroup(random, GroupId(id++), PolicyVersion(step));
      const Decision decision = fair.Judge(group.summary);
      EXPECT_EQ(decision.reason, pace.Judge(group.summary).reason);
      EXPECT_EQ(fair.Score(group.summary), pace.Score(group.summary));
      fair.Observe(group.summary, decision);
      pace.Observe(group.summary, decision);
    }
  }
}

TEST(FairAdmissionTest, CountsWaitingInThePoolUnlessToldOtherwise) {
  TestRandom random(9);
  FairAdmission fair(FairOptions(), 12, 1);
  AdmissionOptions options = FairOptions();
  options.wait_measure = WaitMeasure::kAll;
  FairAdmission all(options, 12, 1);
  fair.BeginStep(PolicyVersion(9), {.occupancy = 12, .batch = 12});
  all.BeginStep(PolicyVersion(9), {.occupancy = 12, .batch = 12});
  for (int64_t i = 0; i < 50; ++i) {
    const TestGroup group = RandomGroup(random, GroupId(i), PolicyVersion(9));
    EXPECT_NEAR(all.Score(group.summary) - fair.Score(group.summary),
                group.summary.WaitingAssembly(), 1e-12);
  }
}

TEST(FairAdmissionTest, EqualLengthsShareOneStratum) {
  FairAdmission fair(FairOptions(), 12, 1);
  int64_t id = 0;
  int64_t num_rejected = 0;
  for (int64_t step = 6; step < 60; ++step) {
    fair.BeginStep(PolicyVersion(step), {.occupancy = 48, .batch = 12});
    for (int64_t draw = 0; draw < 24; ++draw) {
      TestGroup group;
      const std::vector<Segment> segments = {{PolicyVersion(step - draw % 4), 10}};
      group.members = {MemberSummary::Of(segments, PolicyVersion(step - draw % 4), std::nullopt)};
      group.summary = GroupSummary::Of(GroupId(id++), PolicyVersion(step), group.members, 1);
      const Decision decision = fair.Judge(group.summary);
      fair.Observe(group.summary, decision);
      if (step >= 30) num_rejected += decision.verdict == Verdict::kReject ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(num_rejected) / (30 * 24), 0.75, 0.03);
}

TEST(FairAdmissionTest, ARestoredPolicyAnswersAsTheSavedOne) {
  auto fair = std::make_unique<FairAdmission>(FairOptions(), 12, 1);
  FairAdmission twin(FairOptions(), 12, 1);
  TestRandom random(4);
  int64_t id = 0;
  for (int64_t step = 0; step < 60; ++step) {
    const PoolView pool{.occupancy = random.Below(80), .batch = 12};
    fair->BeginStep(PolicyVersion(step), pool);
    twin.BeginStep(PolicyVersion(step), pool);
    for (int64_t draw = 0; draw < 20; ++draw) {
      if (random.Chance(0.05)) {
        auto restored = std::make_unique<FairAdmission>(FairOptions(), 12, 1);
        ASSERT_TRUE(restored->Restore(fair->Save()).ok());
        fair = std::move(restored);
      }
      const TestGroup group = RandomGroup(random, GroupId(id++), PolicyVersion(step));
      const Decision decision = fair->Judge(group.summary);
      ASSERT_EQ(decision.reason, twin.Judge(group.summary).reason);
      fair->Observe(group.summary, decision);
      twin.Observe(group.summary, decision);
    }
  }
}

TEST(FairAdmissionTest, RefusesASnapshotThatDoesNotFitAndStaysAsItWas) {
  FairAdmission fair(FairOptions(), 12, 1);
  Play(fair);
  const AdmissionState good = fair.Save();
  AdmissionState state = good;
  state.strata.pop_back();
  EXPECT_FALSE(fair.Restore(state).ok());
  state = good;
  state.lengths = {std::nan("")};
  EXPECT_FALSE(fair.Restore(state).ok());
  state = good;
  for (AdmissionState& stratum : state.strata) stratum.scores.assign(3, 7);
  state.strata.back().scores = {-1};
  const Status status = fair.Restore(state);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("strata[7]"), std::string::npos) << status.message();
  EXPECT_EQ(fair.Save().strata.front().scores, good.strata.front().scores);
}

}  // namespace
}  // namespace pace
