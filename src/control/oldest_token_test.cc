#include "control/oldest_token.h"

#include <gtest/gtest.h>

#include "control/test_groups.h"

namespace pace {
namespace {

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

}  // namespace
}  // namespace pace
