#include "reward/dapo.h"

#include <gtest/gtest.h>

#include <string>

namespace pace {
namespace {

std::string Extracted(const std::string& response) {
  return VerifyDapo(response, "").extracted.value_or("none");
}

TEST(DapoTest, TakesTheLastAnswerLine) {
  EXPECT_EQ(Extracted("Answer: 3\nmore\nANSWER : 4\nafter"), "4");
  EXPECT_EQ(Extracted("answer\t:\n\n 5 "), "5");
  EXPECT_EQ(Extracted("no colon: Answer 5"), "[INVALID]");
  // One match swallows its whole line.
  EXPECT_EQ(Extracted("Answer: Answer: 7"), "Answer:7");
}

TEST(DapoTest, LooksAtTheLastThreeHundredCharacters) {
  const std::string answer = "Answer: 7";
  EXPECT_EQ(Extracted(answer + std::string(291, ' ')), "7");
  EXPECT_EQ(Extracted(answer + std::string(292, ' ')), "[INVALID]");
  std::string wide;
  for (int i = 0; i < 291; ++i) wide += "日";
  EXPECT_EQ(Extracted(answer + "\n" + wide.substr(3)), "7");
  EXPECT_EQ(Extracted(answer + "\n" + wide), "[INVALID]");
}

TEST(DapoTest, SpaceAndCaseArePythons) {
  EXPECT_EQ(Extracted("An\u017fwer\u00a0:\u20037"), "7");  // long s folds to s
  // With nothing but space after the colon the expression backtracks into it.
  EXPECT_EQ(Extracted("Answer: \u2003\n"), "");
  EXPECT_EQ(Extracted("Answer:\n\n"), "[INVALID]");
}

TEST(DapoTest, NormalizesInTheReferencesOrder) {
  EXPECT_EQ(NormalizeDapo("x = 5"), "5");
  EXPECT_EQ(NormalizeDapo("a = b = \\frac12"), "\\frac{1}{2}");
  EXPECT_EQ(NormalizeDapo("so $1$ and $2$"), "1");
  EXPECT_EQ(NormalizeDapo("$1$ x\n$2$ y"), "1\n2");
  EXPECT_EQ(NormalizeDapo("\\boxed{\\text{a}} b}"), "a}b");
  EXPECT_EQ(NormalizeDapo("\\text{a{b}c}"), "a{bc}");
  EXPECT_EQ(NormalizeDapo("\\sqrt3 + \\frac ab"), "\\sqrt{3}+\\frac{a}{b}");
  EXPECT_EQ(NormalizeDapo("1,234"), "1234");
  EXPECT_EQ(NormalizeDapo("-1,234"), "-1,234");
  EXPECT_EQ(NormalizeDapo("1²,2"), "1²2");
  EXPECT_EQ(NormalizeDapo("kilometers squared"), "kilod");
  EXPECT_EQ(NormalizeDapo("5\\text{ m}"), "5");
  EXPECT_EQ(NormalizeDapo("\\frac{1}{2}"), "\\frac{1}{2}");
  EXPECT_EQ(NormalizeDapo("frac1\n2"), "frac1\n2");
  EXPECT_EQ(NormalizeDapo("\\fracé日"), "\\frac{é}{日}");
}

TEST(DapoTest, ScoresPlusAndMinusOne) {
  EXPECT_EQ(VerifyDapo("Answer: $34$.", "34").score, 1);
  EXPECT_TRUE(VerifyDapo("Answer: 34 dollars", "34").correct);
  EXPECT_EQ(VerifyDapo("Answer: 34.", "34").score, -1);
  EXPECT_FALSE(VerifyDapo("**Answer:** 34", "34").correct);
  // A response without an answer meets an answer that says so.
  EXPECT_TRUE(VerifyDapo("", "[INVALID]").correct);
}

TEST(DapoStrictTest, TakesTheLastBoxLetterForLetter) {
  const Verification seen = VerifyDapoStrict("\\boxed{12} then \\boxed{34}", "34");
  EXPECT_TRUE(seen.correct);
  EXPECT_EQ(seen.score, 1);
  EXPECT_EQ(seen.extracted, "34");
  EXPECT_EQ(VerifyDapoStrict("\\boxed{\\frac{1}{2}}", "x").extracted, "\\frac{1}{2}");
  EXPECT_FALSE(VerifyDapoStrict("\\boxed{ 34 }", "34").correct);
  EXPECT_FALSE(VerifyDapoStrict("\\boxed{034}", "34").correct);
  EXPECT_EQ(VerifyDapoStrict("\\boxed{}", "").extracted, "");
}

TEST(DapoStrictTest, AnOpenLastBoxHidesTheEarlierOnes) {
  const Verification seen = VerifyDapoStrict("\\boxed{34} \\boxed{3", "34");
  EXPECT_FALSE(seen.correct);
  EXPECT_EQ(seen.extracted, std::nullopt);
}

TEST(DapoStrictTest, LooksAtTheLastHundredCharacters) {
  EXPECT_TRUE(VerifyDapoStrict("\\boxed{34}" + std::string(90, 'x'), "34").correct);
  EXPECT_FALSE(VerifyDapoStrict("\\boxed{34}" + std::string(91, 'x'), "34").correct);
}

TEST(DapoIntegerTest, ComparesIntegersByValue) {
  for (const auto& [response, answer] :
       {std::pair<const char*, const char*>{"-1,234", "-1234"},
        {"+5", "5"},
        {"034", "34"},
        {"\u22127", "-7"},
        {"-0", "0"},
        {"1,234,567", "01234567"},
        {"٣", "3"},
        {"123456789012345678901234567890", "0123456789012345678901234567890"}}) {
    EXPECT_TRUE(VerifyDapoInteger(std::string("Answer: ") + response, answer).correct) << response;
  }
}

TEST(DapoIntegerTest, LeavesEverythingElseToTheLetters) {
  for (const auto& [response, answer] : {std::pair<const char*, const char*>{"34.0", "34"},
                                         {"-12,34", "-1234"},
                                         {"--2", "2"},
                                         {"1234", "1235"},
                                         {"", "0"},
                                         {"1,2345", "12346"},
                                         {"+", "0"}}) {
    EXPECT_FALSE(VerifyDapoInteger(std::string("Answer: ") + response, answer).correct) << response;
  }
  EXPECT_TRUE(VerifyDapoInteger("Answer: \\frac12", "\\frac{1}{2}").correct);
}

TEST(DapoIntegerTest, ShowsTheNormalisedAnswer) {
  const Verification seen = VerifyDapoInteger("Answer: -1,234", "-1234");
  EXPECT_EQ(seen.extracted, "-1,234");
  EXPECT_EQ(seen.score, 1);
}

}  // namespace
}  // namespace pace
