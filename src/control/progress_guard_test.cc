#include "control/progress_guard.h"

#include <gtest/gtest.h>

#include "control/test_groups.h"

namespace pace {
namespace {

TestGroup GroupOfVersion(int64_t version) {
  TestGroup group;
  const std::vector<Segment> segments = {{PolicyVersion(version), 2}};
  group.members = {MemberSummary::Of(segments, PolicyVersion(version), std::nullopt)};
  group.summary = GroupSummary::Of(GroupId(1), PolicyVersion(version), group.members, 0);
  return group;
}

Decision Rejected() {
  Decision decision;
  decision.verdict = Verdict::kReject;
  decision.reason = Reason::kOverCutoff;
  return decision;
}

TEST(ProgressGuardTest, AdmitsWhatIsAsFreshAsCanBe) {
  ProgressGuard guard(4, 0.9);
  guard.BeginStep(PolicyVersion(10));
  const auto reason = [&](int64_t version, std::optional<PolicyVersion> served) {
    return guard.Apply(GroupOfVersion(version).summary, Rejected(), served).reason;
  };
  EXPECT_EQ(reason(8, PolicyVersion(8)), Reason::kFreshestPossible);
  EXPECT_EQ(reason(7, PolicyVersion(8)), Reason::kOverCutoff);
  EXPECT_EQ(reason(9, PolicyVersion(10)), Reason::kOverCutoff);
  EXPECT_EQ(reason(10, std::nullopt), Reason::kOverCutoff);
  EXPECT_EQ(guard.num_guarded(), 1);
  EXPECT_EQ(guard.num_rejected(), 3);
}

TEST(ProgressGuardTest, LeavesAdmissionsAlone) {
  ProgressGuard guard(1, std::nullopt);
  guard.BeginStep(PolicyVersion(3));
  Decision admitted;
  admitted.reason = Reason::kUnderCutoff;
  EXPECT_EQ(guard.Apply(GroupOfVersion(3).summary, admitted, PolicyVersion(0)).reason,
            Reason::kUnderCutoff);
  EXPECT_EQ(guard.num_guarded(), 0);
}

TEST(ProgressGuardTest, TheBackstopFollowsTheBudget) {
  EXPECT_EQ(ProgressGuard(12, 0.9).max_rejections(), 120);
  EXPECT_EQ(ProgressGuard(12, 0.5).max_rejections(), 24);
  EXPECT_EQ(ProgressGuard(12, 0.0).max_rejections(), 12);
  EXPECT_EQ(ProgressGuard(12, 1.0).max_rejections(), 120);
  EXPECT_EQ(ProgressGuard(12, std::nullopt).max_rejections(), 120);
  EXPECT_EQ(ProgressGuard(1, 1.0 - 1e-15).max_rejections(), 1000000);
}

TEST(ProgressGuardTest, OpensAfterItsRejectionsAndClosesWithTheStep) {
  ProgressGuard guard(1, 0.5);
  guard.BeginStep(PolicyVersion(9));
  const TestGroup old = GroupOfVersion(0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(guard.Apply(old.summary, Rejected(), PolicyVersion(9)).verdict, Verdict::kReject);
  }
  EXPECT_EQ(guard.Apply(old.summary, Rejected(), PolicyVersion(9)).reason, Reason::kProgressGuard);
  guard.BeginStep(PolicyVersion(10));
  EXPECT_EQ(guard.Apply(old.summary, Rejected(), PolicyVersion(10)).verdict, Verdict::kReject);
}

}  // namespace
}  // namespace pace
