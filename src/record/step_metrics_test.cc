#include "record/step_metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "record/step_clock.h"

namespace pace {
namespace {

// A group of one member that finished at `completed`, all sampled by `sampled`.
struct OneMemberGroup {
  OneMemberGroup(int64_t id, int64_t sampled, int64_t completed, int64_t assembled) {
    const Segment segment{PolicyVersion(sampled), 10};
    members = {MemberSummary::Of({&segment, 1}, PolicyVersion(completed), std::nullopt)};
    summary = GroupSummary::Of(GroupId(id), PolicyVersion(assembled), members, 0);
  }
  std::vector<MemberSummary> members;
  GroupSummary summary;
};

StepPlan PlanOf(int64_t step) {
  StepPlan plan;
  plan.step = PolicyVersion(step);
  plan.occupancy = 20;
  plan.budget = 0.4;
  return plan;
}

Decision Admit(double waiting, double generation, double score) {
  Decision decision;
  decision.waiting = waiting;
  decision.generation = generation;
  decision.score = score;
  return decision;
}

StepTimes TenSeconds() {
  StepTimes times;
  times.step = Seconds(10);
  times.wait_data = Seconds(3);
  times.train = Seconds(5);
  times.sync = Seconds(1);
  times.rescore_visible = Seconds(0.5);
  times.other = Seconds(0.5);
  times.rescore_hidden = Seconds(2);
  return times;
}

MetricsRow TwoTrainedOneRejected() {
  StepMetrics metrics;
  metrics.BeginStep(PlanOf(9));
  const OneMemberGroup a(1, 4, 6, 7), b(2, 8, 8, 9), c(3, 2, 3, 3);
  Decision first = Admit(3, 2, 4.5);
  first.prefix_score = 0.25;
  metrics.AddDraw(a.summary, first, {.length = 100, .reward = 1, .turns = 2});
  Decision second = Admit(1, 0, 1);
  second.reason = Reason::kFreshestPossible;
  metrics.AddDraw(b.summary, second, {.length = 200, .reward = 0, .turns = 4});
  Decision third = Admit(6, 1, 7);
  third.verdict = Verdict::kReject;
  metrics.AddDraw(c.summary, third, {.length = 600, .reward = 0.5, .turns = 9});
  StepTotals totals;
  totals.time = Seconds(90);
  totals.gpu_seconds = 600;
  totals.num_trained_groups = 20;
  totals.num_step_tokens = 5000;
  return metrics.EndStep(TenSeconds(), totals);
}

TEST(StepMetricsTest, StalenessIsOfTheTrainedGroupsAlone) {
  const MetricsRow row = TwoTrainedOneRejected();
  EXPECT_EQ(Find(row, "staleness/waiting/mean"), 2);
  EXPECT_EQ(Find(row, "staleness/waiting/max"), 3);
  EXPECT_EQ(Find(row, "staleness/waiting_assembly/mean"), 1);
  EXPECT_EQ(Find(row, "staleness/waiting_pool/mean"), 1);
  EXPECT_EQ(Find(row, "staleness/generation/mean"), 1);
  EXPECT_EQ(Find(row, "staleness/effective/max"), 4.5);
  EXPECT_EQ(Find(row, "staleness/lag/mean"), 3);
  EXPECT_EQ(Find(row, "prefix/score_mean"), 0.25);
  EXPECT_EQ(Find(row, "prefix/scored_fraction"), 0.5);
}

TEST(StepMetricsTest, SelectionComparesWhatWasDrawnWithWhatWasTrained) {
  const MetricsRow row = TwoTrainedOneRejected();
  EXPECT_EQ(Find(row, "selection/length_offered"), 300);
  EXPECT_EQ(Find(row, "selection/length_trained"), 150);
  EXPECT_EQ(Find(row, "selection/reward_offered"), 0.5);
  EXPECT_EQ(Find(row, "selection/reward_trained"), 0.5);
  EXPECT_EQ(Find(row, "selection/turns_offered"), 5);
  EXPECT_EQ(Find(row, "selection/turns_trained"), 3);
  EXPECT_EQ(Find(row, "admission/offered"), 3);
  EXPECT_EQ(Find(row, "admission/rejected"), 1);
  EXPECT_EQ(Find(row, "admission/guarded"), 1);
}

TEST(StepMetricsTest, WhatWasRejectedStandsBesideTheBudget) {
  const MetricsRow row = TwoTrainedOneRejected();
  EXPECT_EQ(Find(row, "admission/budget"), 0.4);
  EXPECT_DOUBLE_EQ(Find(row, "admission/realised").value(), 1.0 / 3);
}

TEST(StepMetricsTest, RealResponsesTellOfEqualRewardsTruncationAndEngines) {
  StepMetrics metrics;
  metrics.BeginStep(PlanOf(9));
  const OneMemberGroup a(1, 4, 6, 7), b(2, 8, 8, 9);
  metrics.AddDraw(a.summary, Admit(3, 2, 4.5),
                  {.length = 100, .equal_rewards = true, .truncated = 0.5});
  Decision rejected = Admit(6, 1, 7);
  rejected.verdict = Verdict::kReject;
  metrics.AddDraw(b.summary, rejected, {.length = 100, .equal_rewards = false, .truncated = 0});
  StepTimes times = TenSeconds();
  times.engines_busy = Seconds(7.5);
  const MetricsRow row = metrics.EndStep(times, {.num_tokens_in_pool = 77});
  EXPECT_EQ(Find(row, "selection/equal_rewards_offered"), 0.5);
  EXPECT_EQ(Find(row, "selection/equal_rewards_trained"), 1);
  EXPECT_EQ(Find(row, "selection/truncated_offered"), 0.25);
  EXPECT_EQ(Find(row, "selection/truncated_trained"), 0.5);
  EXPECT_EQ(Find(row, "rollout/busy"), 0.75);
  EXPECT_EQ(Find(row, "cost/tokens_in_pool"), 77);
  EXPECT_FALSE(Find(row, "cost/gpu_time").has_value());  // nobody named a GPU
}

TEST(StepMetricsTest, TimesSumToTheStep) {
  const MetricsRow row = TwoTrainedOneRejected();
  double parts = 0;
  for (const char* part : {"wait_data", "train", "sync", "rescore_visible", "other"}) {
    parts += Find(row, std::string("time/") + part).value();
  }
  EXPECT_DOUBLE_EQ(parts, Find(row, "time/step").value());
  EXPECT_EQ(Find(row, "time/rescore_hidden"), 2);
  EXPECT_EQ(Find(row, "cost/per_trained_prompt"), 30);
  EXPECT_EQ(Find(row, "rollout/tokens_per_s"), 500);
}

TEST(StepMetricsDeathTest, TimeThatIsCountedTwiceStopsTheProcess) {
  StepMetrics metrics;
  metrics.BeginStep(PlanOf(1));
  StepTimes times = TenSeconds();
  times.train = Seconds(6);
  EXPECT_DEATH((void)metrics.EndStep(times, {}), "the parts of a step take 11 s");
}

TEST(StepMetricsTest, WhatIsNotKnownIsAbsent) {
  StepMetrics metrics;
  StepPlan plan;
  metrics.BeginStep(plan);
  const MetricsRow row = metrics.EndStep({}, {});
  EXPECT_EQ(row[0].first, "step");
  EXPECT_EQ(row[1].first, "time");
  for (const char* name :
       {"admission/budget", "admission/cutoff", "staleness/waiting/mean", "prefix/score_mean",
        "selection/length_trained", "cost/per_trained_prompt", "rollout/tokens_per_s"}) {
    EXPECT_FALSE(Find(row, name).has_value()) << name;
  }
}

TEST(StepMetricsTest, NothingOfAStepReachesTheNext) {
  StepMetrics metrics;
  metrics.BeginStep(PlanOf(9));
  const OneMemberGroup a(1, 4, 6, 7);
  metrics.AddDraw(a.summary, Admit(3, 2, 4.5), {});
  (void)metrics.EndStep({}, {});
  metrics.BeginStep(PlanOf(10));
  const MetricsRow row = metrics.EndStep({}, {});
  EXPECT_EQ(Find(row, "admission/offered"), 0);
  EXPECT_FALSE(Find(row, "staleness/waiting/mean").has_value());
}

TEST(StepMetricsTest, NoNameComesTwice) {
  std::set<std::string> names;
  for (const auto& [name, value] : TwoTrainedOneRejected()) {
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(StepClockTest, RescoringThatTheTrainerWaitedForIsNotWaitingForData) {
  StepClock clock;
  clock.Set(StepPart::kWaitData, Seconds(1));
  clock.Set(StepPart::kTrain, Seconds(4));
  clock.BlameRescoring(Seconds(2));
  StepTimes times = clock.EndStep(Seconds(9), Seconds(2.5));
  EXPECT_EQ(times.rescore_visible, Seconds(2));
  EXPECT_EQ(times.wait_data, Seconds(2));  // a second from the start, and one of the three
  EXPECT_EQ(times.rescore_hidden, Seconds(0.5));
  EXPECT_EQ(times.step, Seconds(9));
  // Never more than there was to wait.
  clock.Set(StepPart::kTrain, Seconds(9));
  clock.BlameRescoring(Seconds(3));
  times = clock.EndStep(Seconds(10), Seconds(3));
  EXPECT_EQ(times.rescore_visible, Seconds(0));
  EXPECT_EQ(times.rescore_hidden, Seconds(3));
}

}  // namespace
}  // namespace pace
