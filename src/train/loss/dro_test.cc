#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(DroTest, ThePullGrowsWithTheLogRatio) {
  const LossResult result = LossOf("dro", {{"beta", "0.5"}}, {std::exp(2)}, {1});
  // log pi = -1 + 2 = 1: L = -(1 - 0.25 * 4), slope -1 + 0.5 * 2.
  EXPECT_NEAR(result.loss, 0, 1e-12);
  EXPECT_NEAR(result.gradient[0], 0, 1e-12);
}

TEST(DroTest, BetaMustBePositive) {
  EXPECT_EQ(MakePolicyLoss("dro", {{"beta", "0"}}).status().message(), "dro.beta = 0: must be > 0");
}

}  // namespace
}  // namespace pace
