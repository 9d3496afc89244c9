// Texts that are made to take long: each costs quadratic or exponential time, or
// depth without end, in some reader's hands. What a text may cost is counted, not
// timed: bytes read as mathematics, and steps of the comparison.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reward/equivalence.h"
#include "reward/equivalence/answer_search.h"
#include "reward/equivalence/math_comparer.h"
#include "reward/equivalence/math_parser.h"
#include "reward/verifier.h"

namespace pace {
namespace {

std::string Repeat(const std::string& part, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += part;
  return out;
}

// `part` again and again, bare and in every kind of place.
std::vector<std::string> Places(const std::string& part, size_t num_bytes) {
  const std::string text = Repeat(part, num_bytes / part.size() + 1);
  return {text, "$" + text + "$", "\\boxed{" + text + "}", "Answer: " + text + "1"};
}

std::vector<std::string> Parts() {
  return {"{",
          "}",
          "$",
          "$$",
          "\\(",
          "\\[",
          "\\boxed{",
          "\\boxed{1}",
          "\\frac",
          "\\sqrt{",
          "(",
          "|",
          "9",
          " ",
          "1 ",
          "1,",
          "1+",
          "x^",
          "9^{",
          "answer ",
          "answer: ",
          "\n",
          "$1$ ",
          "\\text{",
          "-",
          "x=1,",
          "\\pm",
          "(0,1)\\cup",
          "f(",
          "\\\\",
          "_",
          "\xff",
          "\xe6\x97",
          "final answer is ",
          "\\begin{pmatrix}",
          "\\sum_{i=1}^{2000}",
          "(mod ",
          "\\pmod{",
          "30^\\circ 15'",
          "not 5 ",
          "5 cm per ",
          "1:",
          "=(1+1) ",
          "1 000 ",
          "!"};
}

std::vector<std::string> Formulas() {
  std::string list = "x";
  for (int i = 1; i < 300; ++i) list += ",x+" + std::to_string(i);
  std::string unions = "(0,1)";
  for (int i = 1; i < 200; ++i) {
    unions += "\\cup(" + std::to_string(2 * i) + "," + std::to_string(2 * i + 1) + ")";
  }
  std::string fractions = "1";
  for (int i = 0; i < 100; ++i) fractions += "+\\frac{1}{" + std::to_string(1000003 + 2 * i) + "}";
  const std::string digits(400, '7');
  return {"10^{10^{10}}",
          "10^{-10^{10^{10}}}",
          "9^{9^{9^9}}",
          Repeat("9^{", 20) + "9" + Repeat("}", 20),
          "1000000!",
          "((((9!)!)!)!)!",
          "9" + Repeat("!", 500),
          "\\binom{1000000}{500000}",
          "\\sqrt[" + digits + "]{2}",
          "2^{" + digits + "}",
          digits + "\\cdot" + digits + "\\cdot" + digits,
          "\\sum_{i=1}^{1000}\\sum_{j=1}^{1000}\\sum_{k=1}^{1000}ijk",
          "\\prod_{i=1}^{1999}i!",
          "(x+1)^{1000000}",
          Repeat("\\frac{1}{", 20) + "x" + Repeat("}", 20),
          Repeat("\\{", 20) + "x" + Repeat("\\}", 20),
          "0" + Repeat("\\pm1", 300),
          "9" + Repeat(",\\pm1\\pm2\\pm3", 140),
          "0" + Repeat("+\\sqrt{1000000000000007}", 100),
          "0" + Repeat("+5000!", 200),
          "1" + Repeat(":1", 600),
          "1" + Repeat("/1", 600),
          list,
          "\\{" + list + "\\}",
          unions,
          fractions};
}

TEST(HostileAnswersTest, LittleOfATextIsReadAsMathematics) {
  constexpr size_t kMaxReadBytes = 40'000;  // 10,000 and one list of environments
  for (const std::string& part : Parts()) {
    for (const std::string& text : Places(part, 30'000)) {
      EXPECT_LE(equiv::FindAnswer(text).num_read_bytes, kMaxReadBytes) << part;
    }
  }
}

TEST(HostileAnswersTest, ComparisonsEndAfterAFixedNumberOfSteps) {
  // What one visit may spend beyond the bound.
  constexpr int64_t kMaxSteps = equiv::MathEvaluator::kMaxSteps + 40'000;
  const std::vector<std::string> formulas = Formulas();
  for (size_t i = 0; i < formulas.size(); ++i) {
    const equiv::MathNodePtr one = equiv::ParseMath(formulas[i]);
    ASSERT_NE(one, nullptr) << formulas[i];
    for (const std::string& other : {formulas[(i + 1) % formulas.size()], "2+" + formulas[i],
                                     std::string("x"), std::string("1,2,3")}) {
      const equiv::MathNodePtr another = equiv::ParseMath(other);
      ASSERT_NE(another, nullptr) << other;
      equiv::MathComparer comparer;
      comparer.IsSame(one, another);
      comparer.IsSame(another, one);
      EXPECT_LE(comparer.num_steps(), kMaxSteps) << formulas[i] << " and " << other;
    }
    EXPECT_TRUE(equiv::MathComparer().IsSame(one, one)) << formulas[i];
    EXPECT_FALSE(equiv::MathComparer().IsSame(one, equiv::ParseMath("y"))) << formulas[i];
  }
}

TEST(HostileAnswersTest, EveryModeEndsOnEveryText) {
  for (const std::string& part : Parts()) {
    for (const size_t num_bytes : {3'900u, 34'000u}) {
      for (const std::string& text : Places(part, num_bytes)) {
        VerifyEquivalence(text, "1");
        VerifyEquivalence("1", text);
        VerifyEquivalence(text, text + "2");
        for (const VerifierMode mode : {VerifierMode::kDapoInteger, VerifierMode::kDapoStrict,
                                        VerifierMode::kMath, VerifierMode::kGsm8k}) {
          Verify(mode, text, "1");
          Verify(mode, "Answer: 1", text);
        }
      }
    }
  }
}

TEST(HostileAnswersTest, MegabytesOfDigitsAreNoAnswer) {
  const std::string digits(4'000'000, '9');
  EXPECT_FALSE(VerifyEquivalence(digits, "9").correct);
  EXPECT_FALSE(VerifyEquivalence("$" + digits + "$", "9").correct);
  EXPECT_FALSE(VerifyEquivalence("9", digits).correct);
  EXPECT_FALSE(Verify(VerifierMode::kDapoInteger, "Answer: " + digits, "9").correct);
}

}  // namespace
}  // namespace pace
