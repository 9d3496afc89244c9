#include "reward/equivalence.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pace {
namespace {

struct Case {
  const char* answer;
  const char* response;
};

void Expect(bool correct, const std::vector<Case>& cases) {
  for (const Case& entry : cases) {
    const Verification seen = VerifyEquivalence(entry.response, entry.answer);
    EXPECT_EQ(seen.correct, correct) << entry.answer << " and " << entry.response;
    EXPECT_EQ(seen.score, correct ? 1 : 0);
  }
}

TEST(EquivalenceTest, AcceptsOtherSpellingsOfTheAnswer) {
  Expect(true, {{"\\frac{1}{2}", "so $x = \\boxed{0.5}$."},
                {"$28\\%$", "$\\boxed{28}$ pct"},
                {"1000.99", "the number is not 10 which is 1,000.99€"},
                {"0,111", "0.111"},
                {"\\$32,\\!348", "It costs \\$32,348 in all."},
                {"x \\in [-2,7]", "The solution is $-2 \\le x \\le 7$, that is $[-2, 7]$."},
                {"(3,4)", "Thus $(x,y) = (3, 4)$."},
                {"90^\\circ", "\\angle A = \\boxed{90} degrees"}});
}

TEST(EquivalenceTest, RefusesOtherAnswers) {
  Expect(false, {{"\\frac{1}{2}", "$\\boxed{\\frac{1}{3}}$"},
                 {"2", "AZYUK2A"},
                 {"5", ""},
                 {"", "5"},
                 {"", ""},
                 {"(3,4)", "$(4,3)$"},
                 {"1", "\\boxed{2} but once I thought 1"}});
}

TEST(EquivalenceTest, AnswersThatAreWords) {
  Expect(true, {{"\\text{Evelyn}", "Hence it is $\\text{evelyn}$."},
                {"\\text{even}", "The answer is even."},
                {"east", "The answer is East"},
                {"C", "Answer: (C) 12"},
                {"C", "C. 12"},
                {"\\text{June 20}", "June 20"},
                {"10:00\\text{ a.m.}", "10:00 a.m."}});
  Expect(false, {{"east", "The answer is west"},
                 {"C", "Answer: D"},
                 {"A", "A number is 5"},
                 {"A", "A, B"},
                 {"A", "Answer: (A) or (B)"},
                 {"A", "A. As I see it\nit is $\\text{B}$"},
                 {"10 \\text{ am}", "\\boxed{10 \\text{ pm}}"}});
}

TEST(EquivalenceTest, MeasuresThatBothSidesNameMustAgree) {
  Expect(true, {{"5\\text{ cm}", "5"},
                {"5", "The length is $5$ cm."},
                {"60 mph", "\\boxed{60\\text{ miles per hour}}"},
                {"5 m/s", "5"},
                {"\\$5", "5 dollars"}});
  Expect(false, {{"5 cm", "\\boxed{5\\text{ m}}"},
                 {"5\\text{ cm}^2", "5\\text{ cm}^3"},
                 {"5 cm", "The length is $5$ m."},
                 {"\\$5", "It costs 5 cents."},
                 {"45^\\circ", "45\\%"}});
}

TEST(EquivalenceTest, WordsThatChangeANumberAreNoUnits) {
  Expect(true, {{"5 million", "5{,}000{,}000"},
                {"2.5\\text{ thousand}", "It is 2,500."},
                {"5000000", "It is 5 million."}});
  Expect(false, {{"5", "5 million"},
                 {"5", "\\boxed{5\\text{ or more}}"},
                 {"12", "12\\text{ remainder }3"},
                 {"3\\text{ hours }20\\text{ minutes}", "3\\text{ hours}"}});
}

TEST(EquivalenceTest, SpaceBetweenDigitsCounts) {
  Expect(true, {{"2\\frac13", "2 1/3"}});
  Expect(false, {{"2 1/3", "21/3"}, {"12", "\\boxed{1 2}"}});
}

TEST(EquivalenceTest, TheRightAnswerWithACommaIsAListUnlessItCannotBe) {
  Expect(true, {{"2.3", "2,3"}, {"0,111", "0.111"}, {"1000,99", "1000.99"}, {"2,3", "3,2"}});
  Expect(false, {{"2,3", "2.3"}});
}

TEST(EquivalenceTest, WhatTheAnswerIsNotIsNoAnswer) {
  Expect(true, {{"6", "The answer is not 5 but 6"}});
  Expect(false, {{"5", "The answer is not 5"}, {"5", "It isn't $5$."}});
}

TEST(EquivalenceTest, PartsOfABareFormulaAreNotItsAnswer) {
  Expect(true, {{"5", "= 5"}, {"5", "\\approx 5"}});
  Expect(false, {{"5", "\\geq 5"}, {"5", "5 +"}});
}

TEST(EquivalenceTest, UnreadableAnswersAreComparedAsText) {
  Expect(true, {{"$\\oint_C x \\, dx$", "we get $\\boxed{\\oint_C x\\,dx}$"}});
  Expect(false, {{"$\\oint_C x \\, dx$", "we get $\\boxed{\\oint_C y\\,dx}$"}});
}

TEST(EquivalenceTest, ShowsThePlaceThatWasRead) {
  EXPECT_EQ(VerifyEquivalence("first $2$, then $\\boxed{3 \\text{ cm}}$", "3").extracted, "3");
  EXPECT_EQ(VerifyEquivalence("nothing", "3").extracted, std::nullopt);
}

TEST(EquivalenceTest, LooksAtTheEndOfALongText) {
  const std::string long_text(3 * kMaxVerifiedBytes, 'x');
  EXPECT_TRUE(VerifyEquivalence(long_text + " so it is \\boxed{34}.", "34").correct);
  EXPECT_FALSE(VerifyEquivalence("\\boxed{34} " + long_text, "34").correct);
  // A cut in the middle of a character or of a line does not show.
  std::string wide;
  for (size_t i = 0; i < kMaxVerifiedBytes; ++i) wide += "日";
  EXPECT_TRUE(VerifyEquivalence(wide + "\n$34$", "34").correct);
}

}  // namespace
}  // namespace pace
