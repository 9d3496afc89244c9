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
                {"C", "C. 12"}});
  Expect(false, {{"east", "The answer is west"},
                 {"C", "Answer: D"},
                 {"A", "A number is 5"},
                 {"A", "A. As I see it\nit is $\\text{B}$"},
                 {"10 \\text{ am}", "\\boxed{10 \\text{ pm}}"}});
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
