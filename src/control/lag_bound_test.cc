#include "control/lag_bound.h"

#include <gtest/gtest.h>

#include "control/test_groups.h"

namespace pace {
namespace {

// Two members: one fresh, one whose tokens are all `lag` old at step 10.
TestGroup TwoMembers(int64_t lag) {
  TestGroup group;
  for (const int64_t age : {int64_t{0}, lag}) {
    const std::vector<Segment> segments = {{PolicyVersion(10 - age), 5}};
    group.members.push_back(MemberSummary::Of(segments, PolicyVersion(10), std::nullopt));
  }
  group.summary = GroupSummary::Of(GroupId(1), PolicyVersion(10), group.members, 0);
  return group;
}

TEST(StaleKTest, AdmitsAtTheBoundAndRejectsPastIt) {
  StaleK policy(2, StaleKMeasure::kMean);
  policy.BeginStep(PolicyVersion(10), {.occupancy = 1, .batch = 1});
  EXPECT_EQ(policy.Judge(TwoMembers(4).summary).reason, Reason::kWithinBound);
  policy.BeginStep(PolicyVersion(11), {.occupancy = 1, .batch = 1});
  EXPECT_EQ(policy.Judge(TwoMembers(4).summary).reason, Reason::kOverBound);
}

TEST(StaleKTest, CanBoundTheStalestMemberInstead) {
  StaleK policy(3, StaleKMeasure::kMaxMember);
  policy.BeginStep(PolicyVersion(10), {.occupancy = 1, .batch = 1});
  EXPECT_EQ(policy.Judge(TwoMembers(3).summary).verdict, Verdict::kAdmit);
  EXPECT_EQ(policy.Judge(TwoMembers(4).summary).verdict, Verdict::kReject);
  EXPECT_DOUBLE_EQ(policy.Score(TwoMembers(4).summary), 4);
}

TEST(StaleKTest, MaxMemberIsNeverBelowTheMean) {
  TestRandom random(9);
  for (int64_t i = 0; i < 500; ++i) {
    const TestGroup group = RandomGroup(random, GroupId(i), PolicyVersion(12));
    EXPECT_GE(group.summary.MaxMemberLag(PolicyVersion(12)) + 1e-12,
              group.summary.LagAt(PolicyVersion(12)));
    EXPECT_GE(static_cast<double>(group.summary.MaxTokenLag(PolicyVersion(12))),
              group.summary.MaxMemberLag(PolicyVersion(12)) - 1e-12);
  }
}

TEST(OldestTokenTest, OneOldTokenMakesTheGroupOld) {
  TestGroup group;
  const std::vector<Segment> segments = {{PolicyVersion(2), 1}, {PolicyVersion(5), 999}};
  group.members = {MemberSummary::Of(segments, PolicyVersion(5), std::nullopt)};
  group.summary = GroupSummary::Of(GroupId(1), PolicyVersion(5), group.members, 0);

  OldestToken policy(4);
  policy.BeginStep(PolicyVersion(6), {.occupancy = 1, .batch = 1});
  EXPECT_EQ(policy.Judge(group.summary).reason, Reason::kWithinBound);
  policy.BeginStep(PolicyVersion(7), {.occupancy = 1, .batch = 1});
  const Decision decision = policy.Judge(group.summary);
  EXPECT_EQ(decision.reason, Reason::kOverBound);
  EXPECT_DOUBLE_EQ(decision.score, 5);
}

TEST(StartWindowTest, AdmitsWhatOldestTokenAdmitsAndServesTheOldestStartFirst) {
  TestRandom random(3);
  StartWindow window(2);
  OldestToken bound(2);
  window.BeginStep(PolicyVersion(9), {.occupancy = 5, .batch = 2});
  bound.BeginStep(PolicyVersion(9), {.occupancy = 5, .batch = 2});
  int64_t num_admitted = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const TestGroup group = RandomGroup(random, GroupId(i), PolicyVersion(9));
    const Decision decision = window.Judge(group.summary);
    EXPECT_EQ(decision.reason, bound.Judge(group.summary).reason);
    EXPECT_EQ(window.Score(group.summary), static_cast<double>(group.summary.oldest.step()));
    num_admitted += decision.verdict == Verdict::kAdmit ? 1 : 0;
  }
  EXPECT_GT(num_admitted, 10);
  EXPECT_LT(num_admitted, 190);
}

}  // namespace
}  // namespace pace
