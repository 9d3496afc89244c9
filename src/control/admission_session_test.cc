#include "control/admission_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "control/lag_bound.h"
#include "control/test_groups.h"

namespace pace {
namespace {

AdmissionOptions SessionOptions(TestRandom& random) {
  AdmissionOptions options;
  constexpr AdmissionKind kKinds[] = {AdmissionKind::kPace,        AdmissionKind::kPace,
                                      AdmissionKind::kStaleK,      AdmissionKind::kAcceptAll,
                                      AdmissionKind::kOldestToken, AdmissionKind::kPaceFair,
                                      AdmissionKind::kStartWindow};
  options.policy = kKinds[random.Below(7)];
  options.target_occupancy = random.Below(6);
  options.beta = 0.5;
  options.max_budget = 0.3 + 0.6 * random.Unit();
  options.min_observations = 1 + random.Below(12);
  options.window = options.min_observations + 1 + random.Below(20);
  options.weight_scope = random.Chance(0.5) ? WeightScope::kGroup : WeightScope::kMember;
  options.ties = random.Chance(0.5) ? TieRule::kStrict : TieRule::kFractional;
  options.k = static_cast<double>(random.Below(4));
  options.observe = random.Chance(0.5);
  if (options.policy == AdmissionKind::kPace && random.Chance(0.3)) {
    options.cutoff = CutoffRule::kPool;
  }
  return options;
}

void ExpectSame(const Decision& a, const Decision& b) {
  EXPECT_EQ(a.verdict, b.verdict);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.waiting, b.waiting);
  EXPECT_EQ(a.generation, b.generation);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.score, b.score);
  EXPECT_EQ(a.percentile, b.percentile);
}

TestGroup SessionGroup(int64_t id, int64_t version) {
  TestGroup group;
  const std::vector<Segment> segments = {{PolicyVersion(version), 10}};
  group.members = {MemberSummary::Of(segments, PolicyVersion(version), std::nullopt)};
  group.summary = GroupSummary::Of(GroupId(id), PolicyVersion(version), group.members, 0);
  return group;
}

AdmissionSession StaleSession(double k, int64_t batch) {
  return {std::make_unique<StaleK>(k, StaleKMeasure::kMean), batch};
}

std::string ErrorOf(const Status& status) {
  return status.ok() ? "ok" : status.message();
}

// The reference: the policy and the guard in the order of Coordinator::Offer.
TEST(AdmissionSessionTest, GivesTheVerdictsOfPolicyAndGuardAndSurvivesSaving) {
  int64_t num_rejected = 0, num_guarded = 0, num_chosen = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    TestRandom random(seed);
    const AdmissionOptions options = SessionOptions(random);
    const int64_t batch = 1 + random.Below(5);
    Result<AdmissionSession> session = AdmissionSession::Create(options, batch, seed);
    ASSERT_TRUE(session.ok()) << session.status().message();
    const auto policy = MakeAdmissionPolicy(options, batch, seed);
    ProgressGuard guard(batch, policy->MaxBudget());
    PolicyVersion step;
    int64_t next_group = 0;
    for (int round = 0; round < 25; ++round) {
      step = PolicyVersion(step.step() + 1 + random.Below(2));
      std::vector<TestGroup> groups;
      std::vector<GroupSummary> pool;
      for (int64_t i = random.Below(12); i >= 0; --i) {
        groups.push_back(RandomGroup(random, GroupId(next_group++), step));
      }
      for (const TestGroup& group : groups) pool.push_back(group.summary);
      std::optional<PolicyVersion> served;
      if (random.Chance(0.7)) {
        served = PolicyVersion(std::max<int64_t>(0, step.step() - random.Below(3)));
      }
      const bool whole = policy->RanksPool() || random.Chance(0.5);
      guard.BeginStep(step);
      PoolView view{.occupancy = std::ssize(pool), .batch = batch, .served = served};
      if (whole) view.groups = pool;
      const StepPlan expected = policy->BeginStep(step, view);
      const Result<StepPlan> plan = whole ? session->BeginStep(step, pool, served)
                                          : session->BeginStep(step, std::ssize(pool), served);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(plan->budget, expected.budget);
      EXPECT_EQ(plan->cutoff, expected.cutoff);
      ASSERT_TRUE(std::ranges::equal(session->Chosen(), policy->Chosen()));
      num_chosen += std::ssize(session->Chosen());
      for (const TestGroup& group : groups) {
        if (random.Chance(0.2)) {
          served = PolicyVersion(std::max<int64_t>(0, step.step() - random.Below(3)));
          ASSERT_TRUE(session->SetServed(served).ok());
        }
        const Decision reference = guard.Apply(group.summary, policy->Judge(group.summary), served);
        policy->Observe(group.summary, reference);
        const Result<Decision> decision = session->Draw(group.summary);
        ASSERT_TRUE(decision.ok()) << decision.status().message();
        ExpectSame(*decision, reference);
        EXPECT_FALSE(session->Draw(group.summary).ok());
        if (!policy->RanksPool() && random.Chance(0.1)) {
          const std::string saved = session->Save();
          Result<AdmissionSession> restored = AdmissionSession::Create(options, batch, seed);
          ASSERT_EQ(ErrorOf(restored->Restore(saved, "saved")), "ok");
          EXPECT_EQ(restored->Save(), saved);
          session = std::move(restored);
        }
      }
      EXPECT_EQ(session->in_step().num_rejected, guard.num_rejected());
      EXPECT_EQ(session->in_step().num_guarded, guard.num_guarded());
      EXPECT_EQ(session->in_step().num_offered, std::ssize(groups));
    }
    EXPECT_EQ(session->total().num_offered, next_group);
    num_rejected += session->total().num_rejected;
    num_guarded += session->total().num_guarded;
  }
  // The runs met what the session is for.
  EXPECT_GT(num_rejected, 100);
  EXPECT_GT(num_guarded, 100);
  EXPECT_GT(num_chosen, 10);
}

TEST(AdmissionSessionTest, WithoutGuardsEveryVerdictIsThePolicys) {
  AdmissionSession session(std::make_unique<StaleK>(0, StaleKMeasure::kMean), 1, /*guards=*/false);
  ASSERT_TRUE(session.BeginStep(PolicyVersion(5), 100, PolicyVersion(0)).ok());
  for (int64_t id = 0; id < 100; ++id) {
    EXPECT_EQ(session.Draw(SessionGroup(id, 4).summary)->verdict, Verdict::kReject);
  }
  EXPECT_EQ(session.total().num_rejected, 100);
}

TEST(AdmissionSessionTest, TheBackstopAdmitsAfterTenBatches) {
  AdmissionSession session = StaleSession(0, 2);
  ASSERT_TRUE(session.BeginStep(PolicyVersion(5), 30, std::nullopt).ok());
  for (int64_t id = 0; id < 30; ++id) {
    const Decision decision = *session.Draw(SessionGroup(id, 3).summary);
    EXPECT_EQ(decision.verdict, id < 20 ? Verdict::kReject : Verdict::kAdmit) << id;
  }
  EXPECT_EQ(session.in_step().num_guarded, 10);
}

TEST(AdmissionSessionTest, ACallThatBreaksARuleSaysWhichAndChangesNothing) {
  AdmissionSession session = StaleSession(2, 4);
  EXPECT_EQ(ErrorOf(session.Draw(SessionGroup(1, 0).summary).status()),
            "group 1: no step has begun");
  EXPECT_EQ(ErrorOf(session.SetServed(PolicyVersion(0))),
            "served: no step has begun (call BeginStep first)");
  ASSERT_TRUE(session.BeginStep(PolicyVersion(3), 8, PolicyVersion(2)).ok());
  ASSERT_TRUE(session.Draw(SessionGroup(1, 3).summary).ok());
  const std::string before = session.Save();
  EXPECT_EQ(ErrorOf(session.Draw(SessionGroup(1, 3).summary).status()),
            "group 1: was drawn in step 3 already");
  EXPECT_EQ(ErrorOf(session.Draw(SessionGroup(2, 4).summary).status()),
            "group 2: completed at version 4, after the step 3 that draws it");
  EXPECT_EQ(ErrorOf(session.BeginStep(PolicyVersion(3), 8, std::nullopt).status()),
            "step = 3: must be above 3, the step begun last");
  EXPECT_EQ(ErrorOf(session.BeginStep(PolicyVersion(4), -1, std::nullopt).status()),
            "occupancy = -1: must be from 0 to 2^53");
  EXPECT_EQ(ErrorOf(session.BeginStep(PolicyVersion(4), 8, PolicyVersion(5)).status()),
            "served = 5: must be from 0 to the step, 4");
  const std::vector<GroupSummary> twice = {SessionGroup(7, 1).summary, SessionGroup(7, 1).summary};
  EXPECT_EQ(ErrorOf(session.BeginStep(PolicyVersion(4), twice, std::nullopt).status()),
            "group 7: is in the pool twice");
  EXPECT_EQ(session.Save(), before);
}

TEST(AdmissionSessionTest, APolicyThatRanksThePoolNeedsItsGroups) {
  AdmissionOptions options;
  options.cutoff = CutoffRule::kPool;
  Result<AdmissionSession> session = AdmissionSession::Create(options, 2, 1);
  EXPECT_EQ(ErrorOf(session->BeginStep(PolicyVersion(0), 3, std::nullopt).status()),
            "occupancy = 3: this policy ranks the pool and needs its groups "
            "(admission.cutoff = pool)");
}

TEST(AdmissionSessionTest, OptionsAndBatchAreChecked) {
  AdmissionOptions options;
  EXPECT_EQ(ErrorOf(AdmissionSession::Create(options, 0, 1).status()),
            "batch = 0: must be from 1 to 4294967296 (the groups that one training step needs)");
  options.beta = 2;
  const std::string error = ErrorOf(AdmissionSession::Create(options, 4, 1).status());
  EXPECT_TRUE(error.starts_with("admission.beta = 2: ")) << error;
}

TEST(AdmissionSessionTest, AForeignOrBrokenTextIsNotRestored) {
  AdmissionSession session = StaleSession(2, 4);
  const std::string saved = session.Save();
  EXPECT_EQ(ErrorOf(StaleSession(2, 5).Restore(saved, "s.json")),
            "s.json: batch = 4: the session's is 5");
  EXPECT_FALSE(session.Restore("{}", "s.json").ok());
  EXPECT_FALSE(session.Restore(saved.substr(0, saved.size() / 2), "s.json").ok());
  std::string counts = saved;
  counts.replace(counts.find("\"num_offered\":0"), 15, "\"num_offered\":9");
  EXPECT_EQ(ErrorOf(session.Restore(counts, "s.json")),
            "s.json: in_step: offered must be admitted + rejected, guarded part of admitted");
  EXPECT_EQ(session.Save(), saved);
}

}  // namespace
}  // namespace pace
