#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(SapoTest, AtRatioOneTheGradientIsReinforces) {
  const LossResult result = LossOf("sapo", {}, {1, 1}, {2, -3});
  EXPECT_NEAR(result.gradient[0], -2, 1e-12);
  EXPECT_NEAR(result.gradient[1], 3, 1e-12);
}

TEST(SapoTest, TheGradientFadesWithoutEverStopping) {
  double before = 2;
  for (const double ratio : {2.0, 4.0, 8.0, 16.0}) {
    const double slope = -LossOf("sapo", {{"tau_positive", "2"}}, {ratio}, {1}).gradient[0];
    EXPECT_GT(slope, 0);
    EXPECT_LT(slope, before);
    before = slope;
  }
}

}  // namespace
}  // namespace pace
