#include "reward/equivalence/answer_search.h"

#include <gtest/gtest.h>

#include <string>

#include "reward/boxed.h"
#include "reward/equivalence/answer_text.h"
#include "reward/equivalence/units.h"

namespace pace::equiv {
namespace {

std::string TextOf(const std::string& text) {
  return FindAnswer(text).text;
}

TEST(AnswerSearchTest, ABareFormulaIsItsOwnAnswer) {
  EXPECT_EQ(TextOf(" 2\\sqrt{3} "), "2\\sqrt{3}");
  EXPECT_EQ(TextOf("x^2 - 1"), "x^2 - 1");
  EXPECT_EQ(TextOf("\\text{Evelyn}"), "\\text{Evelyn}");
  EXPECT_EQ(FindAnswer("1,5").readings.size(), 2u);  // a number and a list
  EXPECT_EQ(FindAnswer("1.5").readings.size(), 1u);
  EXPECT_EQ(TextOf("it is 5"), "5");
}

TEST(AnswerSearchTest, ThePhraseOfThePromptComesFirst) {
  EXPECT_EQ(TextOf("\\boxed{4} Final Answer: The final answer is $5$. I hope it is correct. $6$"),
            "5");
  EXPECT_EQ(TextOf("The final answer is 12,000. I hope it is correct. 7"), "12,000");
}

TEST(AnswerSearchTest, TheLastBoxComesBeforeOtherMathematics) {
  EXPECT_EQ(TextOf("$x=1$ so $\\boxed{2}$ since $3>2$"), "2");
  EXPECT_EQ(TextOf("\\boxed{1} is wrong as shown by a long argument. \\boxed{2}"), "2");
  EXPECT_EQ(TextOf("\\boxed{2} or \\boxed{3}"), "2,3");
  EXPECT_EQ(TextOf("\\boxed{\\boxed{2}}"), "2");
}

TEST(AnswerSearchTest, ThenWhatIsAnnounced) {
  EXPECT_EQ(TextOf("Answer: 7 apples, of 9"), "7");
  EXPECT_EQ(TextOf("We get $3$. The answer is $7$ and that was all for $9$."), "7");
  EXPECT_EQ(TextOf("Answer: the sum is 2 + 2 = 4, not 5"), "4");
}

TEST(AnswerSearchTest, ThenTheLastMathematicsOrNumber) {
  EXPECT_EQ(TextOf("We find $x=1$ and then $y=2$."), "y=2");
  EXPECT_EQ(TextOf("so that P(A) = 2/3. Done"), "2/3");
  EXPECT_EQ(TextOf("It is about 1,000.99m², I think"), "1,000.99");
  EXPECT_EQ(TextOf("no number, XY2Z"), "");
}

TEST(AnswerSearchTest, JoinedEnvironmentsAreOneAnswer) {
  EXPECT_EQ(FindAnswer("roots: $1$, $2$ and $3$").readings[0]->args.size(), 3u);
  EXPECT_EQ(TextOf("roots: $1$, $2$ and $3$"), "1 and 2 and 3");
}

TEST(AnswerSearchTest, WhatCannotBeReadIsPassedOver) {
  const FoundAnswer answer = FindAnswer("value $5$, see $\\oint$");
  EXPECT_EQ(answer.text, "5");
  EXPECT_EQ(answer.first_text, "\\oint");
  ASSERT_EQ(answer.readings.size(), 1u);
}

TEST(AnswerSearchTest, ABoxThatCannotBeReadHidesEverythingElse) {
  const FoundAnswer answer = FindAnswer("we get $5$, so \\boxed{\\oint}");
  EXPECT_EQ(answer.text, "\\oint");
  EXPECT_TRUE(answer.readings.empty());
}

TEST(AnswerSearchTest, EscapedAndLonelyDollarsAreNoEnvironments) {
  EXPECT_EQ(TextOf("it costs \\$5 and \\$6 or 7 euro"), "7");
  EXPECT_EQ(TextOf("it costs $1,234.50"), "1,234.50");
  EXPECT_EQ(TextOf("a $ sign\n and another $ and 9 left"), "9");
}

TEST(AnswerSearchTest, ANumberInAnEnvironmentThatSpansLinesIsNoAnswer) {
  EXPECT_EQ(TextOf("Answer $ \n 9 \n $"), "");
  EXPECT_EQ(TextOf("The final answer is $\n9\n$."), "");
  EXPECT_EQ(TextOf("so \\(\n 1 + 2\n\\)"), "");
  EXPECT_EQ(TextOf("$ \n x = 9 \n $, done"), "");
  EXPECT_EQ(TextOf("we have 4, then $\n9\n$"), "4");
  // Money, and environments that are whole.
  EXPECT_EQ(TextOf("one costs $9\n$ is a sign"), "9");
  EXPECT_EQ(TextOf("Answer $ 9 $"), "9");
  EXPECT_EQ(TextOf("Answer $$\n9\n$$"), "9");
}

TEST(AnswerTextTest, TidiesWords) {
  EXPECT_EQ(TidyAnswer("1 \\text{ and } 2", false), "1, 2");
  EXPECT_EQ(TidyAnswer("1, or 2", false), "1, 2");
  EXPECT_EQ(TidyAnswer("28 percent", false), "28\\%");
  EXPECT_EQ(TidyAnswer("12{,}345", false), "12,345");
  EXPECT_EQ(TidyAnswer("12,\\! 345", false), "12,345");
  EXPECT_EQ(TidyAnswer("\\\\frac{1}{2}.", false), "\\frac{1}{2}");
  EXPECT_EQ(TidyAnswer("x = band", false), "x = band");
}

TEST(AnswerTextTest, EndsOfChainsOfEquations) {
  EXPECT_EQ(BehindLastEqual("x = 2 + 3 = 5"), " 5");
  EXPECT_EQ(BehindLastEqual("x = 5"), "x = 5");
  EXPECT_EQ(BehindLastEqual("a = 1, b = 2, c = 3"), "a = 1, b = 2, c = 3");
  EXPECT_EQ(BehindLastEqual("a >= b = c"), "a >= b = c");
}

TEST(UnitsTest, AreDroppedFromTheEndOnly) {
  EXPECT_EQ(WithoutUnits("5 cm"), "5");
  EXPECT_EQ(WithoutUnits("5\\text{ square feet}"), "5");
  EXPECT_EQ(WithoutUnits("5\\text{ cm}^2"), "5");
  EXPECT_EQ(WithoutUnits("5 cm^2"), "5");
  EXPECT_EQ(WithoutUnits("25\\pi square units"), "25\\pi");
  EXPECT_EQ(WithoutUnits("\\frac{1}{2} hours"), "\\frac{1}{2}");
  EXPECT_EQ(WithoutUnits("\\text{Even}"), "\\text{Even}");
  EXPECT_EQ(WithoutUnits("x + c"), "x + c");
  EXPECT_EQ(WithoutUnits("a m"), "a m");
  EXPECT_EQ(WithoutUnits("\\cdot m"), "\\cdot m");
}

TEST(UnitsTest, ALetterBehindANumberIsAUnitOnlyWithSpaceBetween) {
  EXPECT_EQ(WithoutUnits("5 m"), "5");
  EXPECT_EQ(WithoutUnits("3t"), "3t");
  EXPECT_EQ(WithoutUnits("2\\cos 3 t"), "2\\cos 3 t");
}

TEST(UnitsTest, OppositesAreKnownByTheLastWord) {
  EXPECT_TRUE(EndInOpposites("10\\text{ a.m.}", "at 10 PM."));
  EXPECT_TRUE(EndInOpposites("5\\% loss", "5\\% profit"));
  EXPECT_FALSE(EndInOpposites("5\\% loss", "5\\%"));
  EXPECT_FALSE(EndInOpposites("10 am", "10 am"));
  EXPECT_FALSE(EndInOpposites("", "am"));
}

TEST(BoxedTest, JoinsBoxesThatBelongTogether) {
  EXPECT_EQ(JoinBoxes("a \\boxed{1} b \\fbox{2} c", false), "1,2");
  EXPECT_EQ(JoinBoxes("\\boxed{1} no no no no no \\boxed{2}", true), "2");
  EXPECT_EQ(JoinBoxes("\\boxed{1} papers and \\boxed{2} bins", true), "1,2");
  EXPECT_EQ(JoinBoxes("\\boxed{1} then again \\boxed{1}", true), "1");
  EXPECT_EQ(JoinBoxes("\\boxed{1} \\boxed{2", false), "{2");
  EXPECT_EQ(JoinBoxes("no box", false), "no box");
}

}  // namespace
}  // namespace pace::equiv
