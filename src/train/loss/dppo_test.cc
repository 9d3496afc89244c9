#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(DppoTest, ARareTokenMayDoubleACommonOneMayNot) {
  const double rare = std::log(0.01);
  EXPECT_NE(LossOf("dppo", {}, {2}, {1}, false, rare).gradient[0], 0);
  const double common = std::log(0.4);
  EXPECT_EQ(LossOf("dppo", {}, {2}, {1}, false, common).gradient[0], 0);
}

TEST(DppoTest, ATokenThatMovesBackIsNeverStopped) {
  const double common = std::log(0.4);
  for (const char* divergence : {"tv", "kl"}) {
    const NamedSettings settings = {{"divergence", divergence}};
    EXPECT_NE(LossOf("dppo", settings, {0.1}, {1}, false, common).gradient[0], 0);
    EXPECT_NE(LossOf("dppo", settings, {2}, {-1}, false, common).gradient[0], 0);
  }
}

TEST(DppoTest, TheWeightIsCapped) {
  const double rare = std::log(1e-4);
  EXPECT_NEAR(LossOf("dppo", {}, {100}, {1}, false, rare).gradient[0], -20, 1e-12);
}

}  // namespace
}  // namespace pace
