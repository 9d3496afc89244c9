#include "control/start_window.h"

#include <gtest/gtest.h>

#include "control/oldest_token.h"
#include "control/test_groups.h"

namespace pace {
namespace {

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
