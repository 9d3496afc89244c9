#include "config/field.h"

#include <gtest/gtest.h>

#include <array>

namespace pace {
namespace {

enum class Level { kLow, kHigh };
constexpr std::array<std::string_view, 2> kLevels = {"low", "high"};

struct Options {
  double real = 1;
  bool flag = false;
  int64_t count = 0;
  std::optional<double> maybe = 2;
  std::optional<Level> limit = std::nullopt;
  Level level = Level::kLow;

  std::vector<Field> Fields() {
    static constexpr std::array<std::string_view, 3> kLimits = {"auto", "low", "high"};
    return {Field::Real("real", real, "").OrInfinite().AtLeast(-9),
            Field::Bool("flag", flag, ""),
            Field::Int("count", count, ""),
            Field::OptionalReal("maybe", maybe, "", "none").AtMost(5, "small"),
            Field::OptionalEnum("limit", limit, kLimits, ""),
            Field::Enum("level", level, kLevels, "")};
  }
};

std::string Error(const NamedSettings& settings, Options options = {}) {
  return SetFields(options.Fields(), settings, "it").message();
}

TEST(FieldTest, WhatIsNotGivenKeepsItsDefault) {
  Options options;
  ASSERT_TRUE(SetFields(options.Fields(), {{"real", "2.5"}}, "it").ok());
  EXPECT_EQ(options.real, 2.5);
  EXPECT_EQ(options.maybe, 2);
}

TEST(FieldTest, EveryKindIsReadAndReadsBack) {
  const NamedSettings settings = {{"flag", "true"},  {"count", "-3"}, {"maybe", "none"},
                                  {"level", "high"}, {"real", "inf"}, {"limit", "high"}};
  Options options;
  ASSERT_TRUE(SetFields(options.Fields(), settings, "it").ok());
  EXPECT_TRUE(options.flag);
  EXPECT_EQ(options.count, -3);
  EXPECT_FALSE(options.maybe.has_value());
  EXPECT_EQ(options.limit, Level::kHigh);
  EXPECT_EQ(options.level, Level::kHigh);
  Options again;
  for (const Field& field : options.Fields()) {
    ASSERT_TRUE(SetFields(again.Fields(), {{field.key(), field.Get()}}, "it").ok()) << field.key();
  }
  EXPECT_EQ(again.real, options.real);
  EXPECT_EQ(again.maybe, options.maybe);
  EXPECT_EQ(again.limit, options.limit);
}

TEST(FieldTest, ErrorsNameSettingValueAndRule) {
  EXPECT_EQ(Error({{"real", "1x"}}), "it.real = 1x: must be a number");
  EXPECT_EQ(Error({{"real", "nan"}}), "it.real = nan: must be a finite number");
  EXPECT_EQ(Error({{"count", "1.5"}}), "it.count = 1.5: must be an integer");
  EXPECT_EQ(Error({{"maybe", "?"}}), "it.maybe = ?: must be a number or none");
  EXPECT_EQ(Error({{"maybe", "6"}}), "it.maybe = 6: must be <= 5 (small)");
  EXPECT_EQ(Error({{"maybe", "inf"}}), "it.maybe = inf: must be a finite number");
  EXPECT_EQ(Error({{"level", "up"}}), "it.level = up: must be one of low, high");
  EXPECT_EQ(Error({{"reel", "1"}}),
            "unknown key it.reel (nearest: real; it has real, flag, count, maybe, limit, level)");
  EXPECT_EQ(Error({{"real", "1"}, {"real", "2"}}), "it.real = 2: is given twice");
}

TEST(FieldTest, OptionsThatCodeFilledInAreChecked) {
  Options options;
  EXPECT_TRUE(CheckFields(options.Fields(), "it").ok());
  options.maybe = 7;
  EXPECT_EQ(CheckFields(options.Fields(), "it").message(), "it.maybe = 7: must be <= 5 (small)");
}

TEST(NearestTest, CountsEdits) {
  EXPECT_EQ(Nearest("thresold", {"seed", "threshold", "beta"}), "threshold");
  EXPECT_EQ(Nearest("x", {}), "");
}

}  // namespace
}  // namespace pace
