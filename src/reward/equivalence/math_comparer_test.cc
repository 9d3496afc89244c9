#include "reward/equivalence/math_comparer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reward/equivalence/math_parser.h"

namespace pace::equiv {
namespace {

struct Pair {
  const char* right;
  const char* answer;
};

bool IsSame(const std::string& right, const std::string& answer) {
  const MathNodePtr a = ParseMath(right);
  const MathNodePtr b = ParseMath(answer);
  EXPECT_NE(a, nullptr) << right;
  EXPECT_NE(b, nullptr) << answer;
  return a != nullptr && b != nullptr && MathComparer().IsSame(a, b);
}

void ExpectSame(const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    EXPECT_TRUE(IsSame(pair.right, pair.answer)) << pair.right << " and " << pair.answer;
  }
}

void ExpectDifferent(const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    EXPECT_FALSE(IsSame(pair.right, pair.answer)) << pair.right << " and " << pair.answer;
  }
}

TEST(MathComparerTest, NumbersAreExactUnlessWrittenWithAPoint) {
  ExpectSame({{"1/3", "0.333333"},
              {"1/3", "\\frac{2}{6}"},
              {"\\sqrt2", "1.414214"},
              {"0.0833333333333333", "1/12"},
              {"2^{100}", "1267650600228229401496703205376"},
              {"\\sqrt8", "2\\sqrt2"},
              {"5", "5.0"},
              {"20!", "2432902008176640000"},
              {"3^{2024}-3^{2023}", "2\\cdot3^{2023}"},
              {"\\frac{7^{2025}-1}{6}", "\\frac{1-7^{2025}}{-6}"}});
  ExpectSame({{"2/3", "0.6666666666"},
              {"\\pi", "3.1415926"},
              {"0.3", "0.30000000000000004"},
              {"\\frac{1}{\\sqrt{1000003}}", "\\frac{\\sqrt{1000003}}{1000003}"},
              {"(2\\sqrt3+3\\sqrt2)^2", "30+12\\sqrt6"},
              {"(1+\\sqrt{-5})(1-\\sqrt{-5})", "6"},
              {"\\frac{(\\pi+e)^2-\\pi^2}{e}", "2\\pi+e"},
              {"\\frac{1000!}{999!}", "1000"}});
  ExpectDifferent({{"1/3", "0.3333"},
                   {"\\pi", "3.14"},
                   {"\\pi", "22/7"},
                   {"2^{100}", "1267650600228229401496703205377"},
                   {"10^{50}", "10^{50}+1"},
                   {"3^{2024}-1", "3^{2024}"},
                   {"\\frac{7^{2025}-1}{6}", "\\frac{7^{2025}}{6}"},
                   {"e^{-50}", "e^{-51}"},
                   {"0", "10^{-9}"},
                   {"0.0000001", "0.0000002"},
                   {"0", "0.0000001"}});
  ExpectDifferent({{"1", "0.9999999"},
                   {"1", "1.0000004"},
                   {"0.1234567", "0.1234571"},
                   {"\\sqrt{10^{20}+1}", "10^{10}"},
                   {"\\sqrt2\\cdot10^{20}", "\\sqrt2\\cdot10^{20}+1"},
                   {"\\pi^{100}", "\\pi^{100}+1"},
                   {"1000!", "1000!+1"}});
}

TEST(MathComparerTest, NumbersInDifferentBasesDiffer) {
  ExpectSame({{"52_8", "52_{8}"}, {"52_8", "52"}});
  ExpectDifferent({{"52_8", "52_9"}, {"52_8", "53_8"}});
}

TEST(MathComparerTest, PercentIsAHundredthAndForWholeNumbersAlsoTheNumber) {
  ExpectSame(
      {{"28\\%", "0.28"}, {"28\\%", "28"}, {"28", "28\\%"}, {"50\\%", "1/2"}, {"100\\%", "1"}});
  ExpectSame({{"33\\frac13\\%", "1/3"}, {"0\\%", "0"}});
  ExpectDifferent({{"28\\%", "0.0028"},
                   {"2.5\\%", "2.5"},
                   {"28\\%", "29"},
                   {"5", "5\\%\\%"},
                   {"5\\%", "5\\%\\%"},
                   {"5", "-5\\%"},
                   {"1", "1\\%"}});
}

TEST(MathComparerTest, ResiduesOfDifferentModuliDiffer) {
  ExpectSame({{"9\\pmod{11}", "9\\pmod 11"},
              {"9\\pmod{11}", "9"},
              {"9", "9 (mod 11)"},
              {"x\\equiv9\\pmod{11}", "9\\pmod{11}"},
              {"9\\pmod{11}", "129^{34}+96^{38}\\equiv9\\pmod{11}"},
              {"x\\equiv\\pm3\\pmod7", "x\\equiv3,-3\\pmod7"}});
  ExpectDifferent({{"9\\pmod{11}", "9\\pmod{7}"},
                   {"9\\pmod{11}", "8\\pmod{11}"},
                   {"9\\pmod n", "9\\pmod m"},
                   {"9\\pmod{11}", "9\\bmod7"},
                   {"9\\pmod{7}", "9\\bmod11"},
                   {"9 (mod 11)", "9 (mod 7)"},
                   {"x\\equiv2,5\\pmod7", "x\\equiv2,5\\pmod9"},
                   {"x\\equiv1\\pmod3,x\\equiv2\\pmod5", "x\\equiv1\\pmod5,x\\equiv2\\pmod3"}});
}

TEST(MathComparerTest, RatiosOfSeveralPartsMayBeScaled) {
  ExpectSame({{"3:4", "3/4"}, {"1:2:3", "2:4:6"}, {"1:2:3", "\\frac12:1:\\frac32"}});
  ExpectDifferent({{"1:2:3", "2:4:3"}, {"1:2:3", "1/6"}, {"1:2:3", "2,3"}, {"1:2:3:4", "2,3,4"}});
}

TEST(MathComparerTest, SignsOfOneTermAreChosenApart) {
  ExpectSame({{"\\pm1\\pm2", "3,1,-1,-3"},
              {"\\mp3", "\\pm3"},
              {"x=\\pm\\sqrt4=\\pm2", "2,-2"},
              {"(\\pm1,\\pm2)", "(1,2),(-1,-2)"}});
  ExpectDifferent({{"\\pm1\\pm2", "\\pm3"}, {"\\pm3", "3"}, {"1\\pm2\\mp3", "\\pm1\\pm2\\pm3"}});
}

TEST(MathComparerTest, DotsSayThatMoreFollows) {
  ExpectSame({{"1,2,\\ldots,10", "1,2,\\dots,10"}, {"1+2+\\cdots+n", "n+\\cdots+2+1"}});
  ExpectDifferent({{"1,2,\\ldots,10", "1,2,10"}, {"2,4,6,\\dots", "2,4,6"}});
}

TEST(MathComparerTest, ExpressionsAreComparedAsFunctions) {
  ExpectSame({{"(x+1)^2", "x^2+2x+1"},
              {"\\sin^2x+\\cos^2x", "1"},
              {"\\frac1x", "x^{-1}"},
              {"\\sqrt{x^2}", "|x|"},
              {"\\tan^2y+1", "\\sec^2y"},
              {"\\frac{1}{3\\sqrt[3]{x}^2}", "\\frac{1}{3x^{2/3}}"},
              {"(1+i)^2", "2i"},
              {"\\sum_{k=1}^nk", "n(n+1)/2"},
              {"f(x+1)", "f(1+x)"},
              {"\\binom{n}{2}", "n(n-1)/2"},
              {"\\frac{n!}{(n-1)!}", "n"}});
  ExpectDifferent({{"\\sqrt{x^2}", "x"},
                   {"x", "y"},
                   {"f(x)", "g(x)"},
                   {"x+2n+1", "x+1"},
                   {"2\\ln x", "\\ln x^2"},
                   {"1/2x", "x/2"},
                   {"(-1)^n", "1"},
                   {"x", "x+10^{-13}"},
                   {"f(x)", "f'(x)"},
                   {"f'", "f"}});
}

TEST(MathComparerTest, AnAssignmentCountsAsItsValueWhereTheRightAnswerIsOne) {
  ExpectSame({{"5", "x=5"},
              {"x=5", "5"},
              {"x=5", "x=2+3=5"},
              {"x=5", "5=x"},
              {"S:T=7:32", "7/32"},
              {"f(x)=x^2", "x^2"},
              {"(x,y)=(1,2)", "(1,2)"},
              {"(1,2)", "x=1,y=2"},
              {"x+y=5", "5"}});
  ExpectSame({{"0", "a+b=0"}, {"0", "f(3)=0"}, {"0", "\\sin\\pi=0"}});
  ExpectDifferent({{"x=5", "y=5"}, {"x^2+y=0", "0"}, {"0", "x^2+y=0"}, {"x=5", "6"}, {"5", "x=6"}});
  ExpectDifferent({{"6", "5=6"}, {"5", "x+3=5"}});
}

TEST(MathComparerTest, EquationsMaySolveTheSame) {
  ExpectSame({{"2x+4y-3=0", "y=-\\frac12x+\\frac34"},
              {"y=\\frac1x", "xy=1"},
              {"2x=4", "x=2"},
              {"x^2+y^2=1", "1-x^2=y^2"},
              {"x=1/3", "x=0.333333"}});
  ExpectDifferent({{"2x+3y=6", "2x+3y=7"}, {"y=x", "y=-x"}, {"y=x^2", "y=x^3"}, {"y=|x|", "y=x"}});
}

TEST(MathComparerTest, InequalitiesMayBeTurnedAndScaled) {
  ExpectSame({{"x\\le1", "-x\\ge-1"},
              {"x>3", "3<x"},
              {"x>3", "2x>6"},
              {"1<x<3", "3>x>1"},
              {"x\\ne3", "3\\ne x"},
              {"f(2)<f(1)<f(4)", "f(4)>f(1)>f(2)"}});
  ExpectDifferent({{"x>5", "x<5"}, {"x\\ge5", "x>5"}, {"x>3", "-2x>-6"}, {"1<x<3", "1<x<4"}});
}

TEST(MathComparerTest, AnIntervalCountsForAnInequalityButNotTheOtherWayRound) {
  ExpectSame({{"x\\le3", "(-\\infty,3]"},
              {"0<f(x)<1", "(0,1)"},
              {"1\\le x<2", "x\\in[1,2)"},
              {"x\\ne0", "(-\\infty,0)\\cup(0,\\infty)"},
              {"x^2<4", "(-2,2)"},
              {"x\\in[1,2]", "[1,2]"},
              {"x\\in[3,\\infty)", "x\\ge3"}});
  ExpectDifferent({{"(-\\infty,3]", "x\\le3"}, {"x\\le3", "(-\\infty,3)"}});
}

TEST(MathComparerTest, PointsKeepTheirOrderAndSetsDoNot) {
  ExpectSame({{"\\{1,2\\}", "\\{2,1\\}"},
              {"1,2", "(2,1)"},
              {"(1,2)", "1,2"},
              {"\\{1,1,2\\}", "1,2"},
              {"\\{5\\}", "5"},
              {"(1,4.5)", "(1,\\frac92)"},
              {"(1,2),(3,4)", "\\{(3,4),(1,2)\\}"},
              {"(1,2,3)", "[1,2,3]"},
              {"p=5,q=2;p=7,q=2", "(5,2),(7,2)"},
              {"\\pm\\sqrt2", "\\sqrt2,-\\sqrt2"},
              {"x=1,x=2", "1,2"}});
  ExpectDifferent(
      {{"(3,1)", "1,3"}, {"(1,2)", "(2,1)"}, {"1,2", "1,2,3"}, {"1,2", "1"}, {"(1,2,3)", "(1,2)"}});
  ExpectDifferent({{"0,0,0", "(0,0)"}, {"1,2", "(1,2,2)"}, {"[1,1]", "(1,1)"}});
}

TEST(MathComparerTest, ValuesOfNamesKeepToTheirNames) {
  ExpectSame(
      {{"x=3,y=4", "y=4,x=3"}, {"x=3,y=4", "3,4"}, {"y=4,x=3", "(3,4)"}, {"x_1=3,x_2=4", "4,3"}});
  ExpectDifferent({{"x=3,y=4", "(4,3)"}, {"x=3,y=4", "4,3"}, {"(3,4)", "y=3,x=4"}});
}

TEST(MathComparerTest, IntervalsKeepTheirBracketsAndUnionsTheirPoints) {
  ExpectSame({{"[0,1]\\cup[1,2]", "[0,2]"},
              {"(2,\\infty)\\cup(-\\infty,1)", "(-\\infty,1)\\cup(2,\\infty)"},
              {"\\mathbb{R}\\setminus\\{0\\}", "(-\\infty,0)\\cup(0,\\infty)"},
              {"\\{-1\\}\\cup[0,7)", "[0,7)\\cup\\{-1\\}"},
              {"(a,b)\\cup(c,d)", "(c,d)\\cup(a,b)"},
              {"\\emptyset", "\\{\\}"},
              {"[0,2]\\cap[1,3]", "[1,2]"}});
  ExpectDifferent({{"[0,1)", "(0,1)"},
                   {"[0,9)", "[0,1)"},
                   {"\\mathbb{R}", "\\mathbb{N}"},
                   {"[1,2]", "(1,2)"},
                   {"\\emptyset", "0"},
                   {"[1,2]", "1,2"}});
}

TEST(MathComparerTest, MatricesAreComparedEntryByEntry) {
  ExpectSame(
      {{"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
        "\\begin{bmatrix}1&2\\\\3&\\frac82\\end{bmatrix}"},
       {"\\frac12\\begin{pmatrix}2\\\\4\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"}});
  ExpectDifferent(
      {{"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&5\\end{pmatrix}"},
       {"\\begin{pmatrix}1&2\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"}});
}

TEST(MathComparerTest, WordsAreComparedByTheirLetters) {
  ExpectSame({{"\\text{Even}", "Even"},
              {"odd", "\\text{odd}"},
              {"\\text{E}", "e"},
              {"\\text{no solution}", "\\text{No Solution}"}});
  ExpectDifferent({{"\\text{even}", "\\text{odd}"}, {"d", "\\text{E}"}, {"\\text{ab}", "ba"}});
  ExpectSame({{"xyz", "zyx"}, {"2ab", "2ba"}});
  ExpectDifferent({{"dog", "god"}, {"listen", "silent"}});
}

TEST(MathComparerTest, InfinitiesAreTheSameOnlyWithTheirSign) {
  ExpectSame({{"\\infty", "+\\infty"}, {"-\\infty", "-\\infty"}});
  ExpectDifferent({{"\\infty", "-\\infty"}, {"\\infty", "10^{4000}"}, {"10^{10^{10}}", "\\infty"}});
}

TEST(MathComparerTest, ComparesAnythingWithItselfInBoundedWork) {
  std::string tower = "9";
  for (int i = 0; i < 20; ++i) tower = "9^{" + tower + "}";
  EXPECT_TRUE(IsSame(tower, tower));
  EXPECT_FALSE(IsSame(tower, "8"));
  std::string sums = "i";
  for (int i = 0; i < 10; ++i) sums = "\\sum_{i=1}^{2000}" + sums;
  EXPECT_FALSE(IsSame(sums, "1"));
  std::string list = "x";
  for (int i = 1; i < 200; ++i) list += ",x+" + std::to_string(i);
  EXPECT_FALSE(IsSame(list, list + ",y"));
}

}  // namespace
}  // namespace pace::equiv
