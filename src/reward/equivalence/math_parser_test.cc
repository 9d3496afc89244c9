#include "reward/equivalence/math_parser.h"

#include <gtest/gtest.h>

#include <string>

#include "reward/equivalence/math_evaluator.h"

namespace pace::equiv {
namespace {

MathKind KindOf(const std::string& text) {
  const MathNodePtr node = ParseMath(text);
  EXPECT_NE(node, nullptr) << text;
  return node == nullptr ? MathKind::kNumber : node->kind;
}

// The value where it is one number, else NaN.
double ValueOf(const std::string& text) {
  const MathNodePtr node = ParseMath(text);
  if (node == nullptr) return NAN;
  return static_cast<double>(MathEvaluator().RealOf(node).value_or(NAN));
}

bool IsSameTree(const std::string& one, const std::string& other) {
  const MathNodePtr a = ParseMath(one);
  const MathNodePtr b = ParseMath(other);
  return a != nullptr && b != nullptr && StructureOf(*a) == StructureOf(*b);
}

TEST(MathParserTest, ReadsNumbers) {
  EXPECT_EQ(ValueOf("12"), 12);
  EXPECT_EQ(ValueOf("-.5"), -0.5);
  EXPECT_EQ(ValueOf("12,345"), 12345);
  EXPECT_EQ(ValueOf("-1,234,567.5"), -1234567.5);
  EXPECT_EQ(ValueOf("1 234 567"), 1234567);
  EXPECT_EQ(ValueOf("0,125"), 0.125);
  EXPECT_EQ(ValueOf("1.5E-3"), 0.0015);
  EXPECT_EQ(ValueOf("2e3"), 2000);
  EXPECT_EQ(ValueOf("28\\%"), 0.28);
  EXPECT_EQ(ValueOf("52_8"), 52);
  EXPECT_EQ(ValueOf("90^\\circ"), 90);
  EXPECT_EQ(ValueOf("5."), 5);
  EXPECT_DOUBLE_EQ(ValueOf("0.1\\overline{6}"), 1.0 / 6);
}

TEST(MathParserTest, ReadsShorthand) {
  EXPECT_EQ(ValueOf("\\frac12"), 0.5);
  EXPECT_EQ(ValueOf("\\frac1{20}"), 0.05);
  EXPECT_EQ(ValueOf("\\frac{1}4"), 0.25);
  EXPECT_EQ(ValueOf("\\frac125"), 0.04);
  EXPECT_EQ(ValueOf("\\sqrt9"), 3);
  EXPECT_EQ(ValueOf("\\sqrt[3]{27}"), 3);
  EXPECT_EQ(ValueOf("\\sqrt42"), 4);
  EXPECT_EQ(ValueOf("sqrt(16)"), 4);
  EXPECT_EQ(ValueOf("√16"), 4);
  EXPECT_EQ(ValueOf("2^10"), 1024);
  EXPECT_EQ(ValueOf("2^{-1}"), 0.5);
  EXPECT_EQ(ValueOf("2^-1"), 0.5);
  EXPECT_EQ(ValueOf("3²"), 9);
  EXPECT_EQ(ValueOf("{6 \\over 3}"), 2);
  EXPECT_EQ(ValueOf("{5 \\choose 2}"), 10);
  EXPECT_EQ(ValueOf("\\log_28"), 3);
}

TEST(MathParserTest, MixedNumbersAdd) {
  EXPECT_EQ(ValueOf("2\\frac{1}{2}"), 2.5);
  EXPECT_EQ(ValueOf("-2\\frac12"), -2.5);
  EXPECT_EQ(ValueOf("2 1/2"), 2.5);
  EXPECT_EQ(ValueOf("2\\cdot\\frac{1}{2}"), 1);
  EXPECT_EQ(ValueOf("2(\\frac{1}{2})"), 1);
}

TEST(MathParserTest, MinutesAndSecondsArePartsOfADegree) {
  EXPECT_EQ(ValueOf("30^\\circ 15'"), 30.25);
  EXPECT_EQ(ValueOf("30°15'36''"), 30.26);
  EXPECT_EQ(ParseMath("30^\\circ 15"), nullptr);
  EXPECT_EQ(ParseMath("f\\circ g"), nullptr);
}

TEST(MathParserTest, OperatorsBindAsDocumented) {
  EXPECT_EQ(ValueOf("2+3\\cdot4"), 14);
  EXPECT_EQ(ValueOf("-2^2"), -4);
  EXPECT_EQ(ValueOf("12/2(3)"), 2);
  EXPECT_EQ(ValueOf("12/2\\cdot3"), 18);
  EXPECT_EQ(ValueOf("7:2"), 3.5);
  EXPECT_EQ(ValueOf("2--3"), 5);
  EXPECT_EQ(ValueOf("3!+1"), 7);
  EXPECT_EQ(ValueOf("|2-5|+1"), 4);
  EXPECT_EQ(ValueOf("||-2|-5|"), 3);
  EXPECT_EQ(ValueOf("\\lfloor 7/2\\rfloor\\lceil 0.1\\rceil"), 3);
}

TEST(MathParserTest, FunctionsTakeTheProductBehindThem) {
  EXPECT_EQ(ValueOf("\\sin 0 + 1"), 1);
  EXPECT_TRUE(IsSameTree("\\sin 2x\\cos y", "\\sin(2x)\\cos(y)"));
  EXPECT_TRUE(IsSameTree("\\sin^2 x", "(\\sin x)^2"));
  EXPECT_TRUE(IsSameTree("\\sin^{-1}x", "\\arcsin x"));
  EXPECT_TRUE(IsSameTree("\\operatorname{sin} x", "sin x"));
  EXPECT_DOUBLE_EQ(ValueOf("\\ln e^2"), 2);
  EXPECT_DOUBLE_EQ(ValueOf("\\log 1000"), 3);
  EXPECT_EQ(ValueOf("\\max(1,3,2)"), 3);
  EXPECT_EQ(ValueOf("\\gcd(12,18)"), 6);
  EXPECT_EQ(ValueOf("\\sum_{i=1}^{4} i^2"), 30);
}

TEST(MathParserTest, ALetterBeforeAnAtomIsAFunction) {
  EXPECT_EQ(KindOf("f(2)"), MathKind::kCall);
  EXPECT_EQ(KindOf("f(x,y)"), MathKind::kCall);
  EXPECT_EQ(KindOf("x(x+1)"), MathKind::kMultiply);
  EXPECT_EQ(KindOf("2(x)"), MathKind::kMultiply);
}

TEST(MathParserTest, NamesAreOneCaseAndMayBeWords) {
  EXPECT_TRUE(IsSameTree("X_{12}", "x_12"));
  EXPECT_TRUE(IsSameTree("\\text{(C)}", "c"));
  EXPECT_TRUE(IsSameTree("\\mathbf{x}+\\mathrm{y}", "x+y"));
  EXPECT_FALSE(IsSameTree("\\vec{x}", "x"));
  EXPECT_TRUE(IsSameTree("\\alpha\\quadx", "α x"));
}

TEST(MathParserTest, BracketsMakeTuplesSetsAndGroups) {
  EXPECT_EQ(KindOf("(1,2)"), MathKind::kTuple);
  EXPECT_EQ(KindOf("[1,2)"), MathKind::kTuple);
  EXPECT_EQ(KindOf("\\{1,2\\}"), MathKind::kSet);
  EXPECT_EQ(KindOf("{1,2}"), MathKind::kSet);
  EXPECT_EQ(KindOf("1,2"), MathKind::kSet);
  EXPECT_EQ(KindOf("\\{1\\}"), MathKind::kSet);
  EXPECT_EQ(ValueOf("((({5})))"), 5);
  EXPECT_EQ(KindOf("(0,1)\\cup[2,3]"), MathKind::kUnion);
  EXPECT_EQ(ParseMath("\\{1\\pm2,7\\}")->args.size(), 3u);
  EXPECT_EQ(ParseMath("a=1,b=2;a=3,b=4")->args[0]->kind, MathKind::kTuple);
}

TEST(MathParserTest, AnAssignmentMayTakeAList) {
  const MathNodePtr node = ParseMath("x=1,2,3");
  ASSERT_EQ(node->kind, MathKind::kRelation);
  EXPECT_EQ(node->args[1]->args.size(), 3u);
  EXPECT_EQ(KindOf("x=1,y=2"), MathKind::kSet);
  EXPECT_EQ(ParseMath("x=1,234")->args[1]->kind, MathKind::kNumber);
}

TEST(MathParserTest, ApproximationsAreDropped) {
  EXPECT_EQ(ValueOf("\\frac12\\approx 0.5001"), 0.5);
  EXPECT_EQ(ValueOf("x\\approx 5"), 5);
  EXPECT_EQ(ParseMath("x = 5 \\approx 6")->args.size(), 2u);
}

TEST(MathParserTest, ReadsMatrices) {
  const MathNodePtr matrix = ParseMath("2\\begin{pmatrix}1&2\\\\3&4\\\\\\end{pmatrix}^T");
  ASSERT_EQ(matrix->kind, MathKind::kMatrix);
  EXPECT_EQ(matrix->num_columns, 2u);
  MathEvaluator evaluator;
  EXPECT_EQ(evaluator.RealOf(matrix->args[1]), 6);
  EXPECT_EQ(ValueOf("\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}"), -2);
  EXPECT_EQ(KindOf("\\left[\\begin{array}{cc}1&2\\end{array}\\right]"), MathKind::kMatrix);
}

TEST(MathParserTest, RefusesWhatIsNotMathematics) {
  for (const char* text : {"",           "(",
                           "1+",         "1 2",
                           "\\frac",     "\\frac{1}",
                           "x^",         "\\zzz",
                           "\\int x dx", "(1,2",
                           "\\{1,2]",    "1,,2",
                           "a=",         "\\begin{pmatrix}1&2\\\\3\\end{pmatrix}",
                           "\\sqrt",     "|x",
                           "@",          "1..2",
                           "\\text{a",   "\\lim_{x\\to0}x"}) {
    EXPECT_EQ(ParseMath(text), nullptr) << text;
  }
}

TEST(MathParserTest, RefusesDepthAndLengthBeyondItsBounds) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '(') + "1" + std::string(depth, ')');
  };
  EXPECT_NE(ParseMath(nested(30)), nullptr);
  EXPECT_EQ(ParseMath(nested(1000)), nullptr);
  EXPECT_EQ(ParseMath(std::string(kMaxMathBytes + 1, '1')), nullptr);
  EXPECT_NE(ParseMath(std::string(1000, '-') + "1"), nullptr);
}

}  // namespace
}  // namespace pace::equiv
