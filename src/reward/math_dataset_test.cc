#include "reward/math_dataset.h"

#include <gtest/gtest.h>

#include <string>

namespace pace {
namespace {

TEST(MathDatasetTest, OneFormForSpellingsOfOneAnswer) {
  for (const auto& [one, other] : {std::pair<const char*, const char*>{"\\frac12", "\\frac{1}{2}"},
                                   {"\\frac1{72}", "\\frac{1}{72}"},
                                   {"\\dfrac{1}{2}", "\\tfrac12"},
                                   {"1/2", "\\frac{1}{2}"},
                                   {"0.5", "\\frac{1}{2}"},
                                   {".5", "0.5"},
                                   {"\\sqrt3", "\\sqrt{3}"},
                                   {"x=5", "5"},
                                   {"5\\text{ cm}", "5"},
                                   {"50\\%", "50"},
                                   {"90^\\circ", "90"},
                                   {"\\left(1,2\\right)", "(1,2)"},
                                   {"1 + 2", "1+2"},
                                   {"\\$5", "5"},
                                   {"10,\\!000", "10,000"},
                                   {"a\\\\b", "a\\b"}}) {
    EXPECT_TRUE(IsMathEquivalent(one, other)) << one << " and " << other;
  }
}

TEST(MathDatasetTest, DoesNotCompute) {
  for (const auto& [one, other] : {std::pair<const char*, const char*>{"2/4", "1/2"},
                                   {"1,000", "1000"},
                                   {"xyz=5", "5"},
                                   {"\\frac{72}1", "72"},
                                   {"+1/2", "\\frac{1}{2}"},
                                   {"01/2", "\\frac{1}{2}"},
                                   {"1.0", "1"}}) {
    EXPECT_FALSE(IsMathEquivalent(one, other)) << one << " and " << other;
  }
}

TEST(MathDatasetTest, TextsTheNormaliserFailsOnMustBeTheSame) {
  EXPECT_EQ(NormalizeMath("5\\text{ a}\\text{ b}"), std::nullopt);
  EXPECT_EQ(NormalizeMath("\\frac"), std::nullopt);
  EXPECT_EQ(NormalizeMath("2\\sqrt"), std::nullopt);
  EXPECT_TRUE(IsMathEquivalent("\\frac", "\\frac"));
  EXPECT_FALSE(IsMathEquivalent("\\frac", "\\dfrac"));
  EXPECT_EQ(NormalizeMath("\\frac1"), "\\frac1");
}

TEST(MathDatasetTest, TakesTheLastBox) {
  EXPECT_EQ(VerifyMath("\\boxed{1} or $\\boxed{\\frac12}$", "1/2").score, 1);
  EXPECT_EQ(VerifyMath("so $\\boxed 5$ is it", "5").extracted, "5");
  EXPECT_TRUE(VerifyMath("\\fbox{5}", "5").correct);
  EXPECT_FALSE(VerifyMath("5 \\boxed{6", "5").correct);
  EXPECT_EQ(VerifyMath("\\boxed{6", "5").extracted, std::nullopt);
}

TEST(MathDatasetTest, WithoutABoxTheResponseIsTheAnswer) {
  EXPECT_TRUE(VerifyMath("\\frac12", "1/2").correct);
  EXPECT_EQ(VerifyMath("the answer is 5", "5").score, 0);
}

}  // namespace
}  // namespace pace
