#include <gtest/gtest.h>

#include "reward/math_dataset.h"

namespace pace {
namespace {

TEST(Gsm8kTest, TakesTheNumberBehindTheLastMarker) {
  EXPECT_EQ(ExtractGsm8k("#### 12\n#### 42 apples, 7 left"), "42");
  EXPECT_EQ(ExtractGsm8k("####-3"), "-3");
  EXPECT_EQ(ExtractGsm8k("#### $1,234.50."), "1234.5");
  // A marker without a number does not count.
  EXPECT_EQ(ExtractGsm8k("#### 5\n#### none"), "5");
}

TEST(Gsm8kTest, FallsBackToTheLastNumber) {
  EXPECT_EQ(ExtractGsm8k("He has 3 apples and 12."), "12");
  EXPECT_EQ(ExtractGsm8k("it costs $0.50!"), "0.5");
  EXPECT_EQ(ExtractGsm8k("from 10-12"), "12");
  EXPECT_EQ(ExtractGsm8k("it is -12"), "-12");
  EXPECT_EQ(ExtractGsm8k("none"), std::nullopt);
  EXPECT_EQ(ExtractGsm8k(""), std::nullopt);
}

TEST(Gsm8kTest, ComparesByValue) {
  EXPECT_EQ(VerifyGsm8k("#### 42.0", "42").score, 1);
  EXPECT_EQ(VerifyGsm8k("#### 1,000", "1000").score, 1);
  EXPECT_EQ(VerifyGsm8k("#### -0", "0").score, 1);
  EXPECT_EQ(VerifyGsm8k("#### 042", "42").score, 1);
  EXPECT_EQ(VerifyGsm8k("#### 43", "42").score, 0);
  EXPECT_EQ(VerifyGsm8k("no idea", "42").extracted, std::nullopt);
}

TEST(Gsm8kTest, TheAnswerMayBeAWholeSolution) {
  EXPECT_TRUE(VerifyGsm8k("so 9 * 2 = 18", "Janet sells 16 - 3 = 13.\n#### 18").correct);
}

}  // namespace
}  // namespace pace
