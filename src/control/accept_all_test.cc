#include "control/accept_all.h"

#include <gtest/gtest.h>

#include "control/pace_admission.h"
#include "control/test_groups.h"

namespace pace {
namespace {

TEST(AcceptAllTest, AdmitsWhateverItIsGiven) {
  AcceptAll policy(nullptr);
  TestRandom random(1);
  policy.BeginStep(PolicyVersion(9), {.occupancy = 1000, .batch = 1});
  for (int64_t i = 0; i < 100; ++i) {
    const TestGroup group = RandomGroup(random, GroupId(i), PolicyVersion(9));
    const Decision decision = policy.Judge(group.summary);
    EXPECT_EQ(decision.reason, Reason::kUnfiltered);
    EXPECT_EQ(decision.score, group.summary.LagAt(PolicyVersion(9)));
  }
}

// What it reports under `observe` is what PACE itself would have computed from
// the same draws.
TEST(AcceptAllTest, ObservesWhatPaceWouldSee) {
  AdmissionOptions options;
  options.min_observations = 5;
  options.window = 40;
  options.target_occupancy = 3;
  AcceptAll observing(std::make_unique<PaceAdmission>(options, 4, 1));
  PaceAdmission filtering(options, 4, 1);
  TestRandom random(2);
  int64_t id = 0, would_reject = 0;
  for (int64_t step = 0; step < 20; ++step) {
    const PoolView view{.occupancy = random.Below(40), .batch = 4};
    EXPECT_EQ(observing.BeginStep(PolicyVersion(step), view).cutoff,
              filtering.BeginStep(PolicyVersion(step), view).cutoff);
    for (int64_t d = 0; d < 10; ++d) {
      const TestGroup group = RandomGroup(random, GroupId(id++), PolicyVersion(step));
      const Decision seen = observing.Judge(group.summary);
      const Decision ruled = filtering.Judge(group.summary);
      EXPECT_EQ(seen.verdict, Verdict::kAdmit);
      EXPECT_EQ(seen.score, ruled.score);
      EXPECT_EQ(seen.percentile, ruled.percentile);
      would_reject += ruled.verdict == Verdict::kReject;
      observing.Observe(group.summary, seen);
      filtering.Observe(group.summary, ruled);
    }
  }
  EXPECT_GT(would_reject, 0);
}

}  // namespace
}  // namespace pace
