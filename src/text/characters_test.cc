#include "text/characters.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

// All as Python 3.11 prints them.
TEST(LetterCaseTest, OneLetterMayBecomeSeveral) {
  EXPECT_EQ(PythonUpper("straße ﬁn ŉ"), "STRASSE FIN ʼN");
  EXPECT_EQ(PythonTitle("ﬁn ßa"), "Fin Ssa");
  EXPECT_EQ(PythonCapitalize("ǆAB"), "ǅab");
  EXPECT_EQ(PythonLower("İ"), "i\u0307");
  EXPECT_EQ(PythonUpper("ᾳ"), "ΑΙ");
  EXPECT_EQ(PythonTitle("ᾳ"), "ᾼ");
}

TEST(LetterCaseTest, ASigmaEndsAWordInItsFinalForm) {
  EXPECT_EQ(PythonLower("ΟΔΟΣ ΟΔΟΣ."), "οδος οδος.");
  EXPECT_EQ(PythonLower("ΣΑ ΑΣΑ Σ"), "σα ασα σ");
  EXPECT_EQ(PythonLower("ΑΣ'Α ΑΣ' "), "ασ'α ας' ");
}

TEST(LetterCaseTest, ATitleBeginsAfterWhatHasNoCase) {
  EXPECT_EQ(PythonTitle("they're x1y 中a"), "They'Re X1Y 中A");
  EXPECT_EQ(PythonTitle(""), "");
}

TEST(LetterCaseTest, TheFilterTitleBeginsAfterSpaceDashesAndBrackets) {
  EXPECT_EQ(JinjaTitle("they're x-ray (a [b {c <d\tE"), "They're X-Ray (A [B {C <D\tE");
  EXPECT_EQ(JinjaTitle("ßa éB 中a"), "SSa Éb 中a");
  EXPECT_EQ(JinjaTitle("-"), "-");
}

}  // namespace
}  // namespace pace
