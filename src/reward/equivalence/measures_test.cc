#include <gtest/gtest.h>

#include "reward/equivalence/units.h"

namespace pace::equiv {
namespace {

TEST(MeasuresTest, AMeasureHasManySpellings) {
  EXPECT_EQ(MeasureAtEnd("5 cm"), "cm");
  EXPECT_EQ(MeasureAtEnd("5\\text{ centimeters}"), "cm");
  EXPECT_EQ(MeasureAtEnd("\\frac{5}{2}\\,\\mathrm{cm}"), "cm");
  EXPECT_EQ(MeasureAtEnd("36\\pi\\text{ cm}^{2}"), "cm^2");
  EXPECT_EQ(MeasureAtEnd("36 square feet."), "ft^2");
  EXPECT_EQ(MeasureAtEnd("36 sq. ft"), "ft^2");
  EXPECT_EQ(MeasureAtEnd("36 m³"), "m^3");
  EXPECT_EQ(MeasureAtEnd("60 miles per hour"), "mi/h");
  EXPECT_EQ(MeasureAtEnd("60 mph"), "mi/h");
  EXPECT_EQ(MeasureAtEnd("9.8\\text{ m/s}^2"), "m/s^2");
  EXPECT_EQ(MeasureAtEnd("20^\\circ\\text{C}"), "celsius");
  EXPECT_EQ(MeasureAtEnd("20°"), "degree");
  EXPECT_EQ(MeasureAtEnd("\\$5"), "dollar");
  EXPECT_EQ(MeasureAtEnd("5\\%"), "percent");
}

TEST(MeasuresTest, OtherWordsAreNone) {
  for (const char* answer : {"5", "", "x", "5 apples", "5x", "5 cm wide", "cm", "x^2", "5 m/x"}) {
    EXPECT_EQ(MeasureAtEnd(answer), "") << answer;
  }
}

TEST(MeasuresTest, BehindANumberTheSentenceGoesOn) {
  EXPECT_EQ(MeasureAtBegin(" cm, which is much"), "cm");
  EXPECT_EQ(MeasureAtBegin(" miles per hour on average"), "mi/h");
  EXPECT_EQ(MeasureAtBegin(" and 6 cm"), "");
  EXPECT_EQ(MeasureAtBegin(""), "");
}

TEST(MeasuresTest, OnlyWhatBothSayCanDiffer) {
  EXPECT_TRUE(AreDifferentMeasures("cm", "m"));
  EXPECT_TRUE(AreDifferentMeasures("cm", "cm^2"));
  EXPECT_TRUE(AreDifferentMeasures("celsius", "fahrenheit"));
  EXPECT_FALSE(AreDifferentMeasures("cm", "cm"));
  EXPECT_FALSE(AreDifferentMeasures("cm", ""));
  EXPECT_FALSE(AreDifferentMeasures("degree", "celsius"));
}

}  // namespace
}  // namespace pace::equiv
