#include <gtest/gtest.h>

#include "train/loss/one_token.h"

namespace pace {
namespace {

TEST(CispoTest, ATokenBeyondTheClipKeepsABoundedGradient) {
  const LossResult result = LossOf("cispo", {}, {1.1, 5, 0.01}, {1, 1, 1});
  EXPECT_NEAR(result.gradient[0], -1.1, 1e-12);
  EXPECT_NEAR(result.gradient[1], -1.2, 1e-12);
  EXPECT_NEAR(result.gradient[2], -0.01, 1e-12);
}

TEST(CispoTest, TheWeightItselfHasNoGradient) {
  // L = -w A log pi: at ratio 1 and log pi = -1, L = 1 and its slope is -1.
  const LossResult result = LossOf("cispo", {}, {1}, {1});
  EXPECT_NEAR(result.loss, 1, 1e-12);
  EXPECT_NEAR(result.gradient[0], -1, 1e-12);
}

}  // namespace
}  // namespace pace
