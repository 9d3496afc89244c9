#include "reward/python_characters.h"

#include <gtest/gtest.h>

#include "core/utf8.h"

namespace pace {
namespace {

TEST(PythonCharactersTest, LastCharactersCountsCodePoints) {
  EXPECT_EQ(LastCharacters("aé日😀", 2), "日😀");
  EXPECT_EQ(LastCharacters("aé日😀", 3), "é日😀");
  EXPECT_EQ(LastCharacters("aé", 5), "aé");
  EXPECT_EQ(LastCharacters("", 5), "");
  EXPECT_EQ(LastCharacters("abc", 0), "");
}

TEST(PythonCharactersTest, LastCharactersTakesStrayBytesAsOneEach) {
  EXPECT_EQ(LastCharacters("ab\x80\x80", 3), "b\x80\x80");
}

TEST(PythonCharactersTest, SpaceIsWhatPythonStrips) {
  EXPECT_EQ(StripSpace(" \t\n\r\v\f\x1c\x1d\x1e\x1f\u0085\u00a0x y\u2003\u2028\u3000"), "x y");
  EXPECT_EQ(StripSpace("\u200bx"), "\u200bx");  // no space for Python
  EXPECT_EQ(StripSpace(" \u00a0 "), "");
}

TEST(PythonCharactersTest, DigitsIncludeSuperscriptsButNotFractions) {
  EXPECT_TRUE(IsAllDigits("012"));
  EXPECT_TRUE(IsAllDigits("1²"));
  EXPECT_TRUE(IsAllDigits("٣४"));
  EXPECT_TRUE(IsAllDigits("①"));
  EXPECT_FALSE(IsAllDigits("½"));
  EXPECT_FALSE(IsAllDigits("Ⅳ"));
  EXPECT_FALSE(IsAllDigits("1 2"));
  EXPECT_FALSE(IsAllDigits(""));
}

TEST(PythonCharactersTest, DecimalDigitsHaveValuesInEveryScript) {
  EXPECT_EQ(DecimalDigitValue('7'), 7);
  EXPECT_EQ(DecimalDigitValue(0x663), 3);    // Arabic-Indic
  EXPECT_EQ(DecimalDigitValue(0xFF19), 9);   // full width
  EXPECT_EQ(DecimalDigitValue(0x1D7D8), 0);  // the second run of a block of five
  EXPECT_EQ(DecimalDigitValue(0xB2), std::nullopt);
}

TEST(PythonCharactersTest, ReplacesFromLeftToRightWithoutOverlap) {
  EXPECT_EQ(ReplaceAll("aaaa", "aa", "b"), "bb");
  EXPECT_EQ(ReplaceAll("aaa", "aa", ""), "a");
  EXPECT_EQ(ReplaceAll("abab", "ab", "aab"), "aabaab");
}

}  // namespace
}  // namespace pace
