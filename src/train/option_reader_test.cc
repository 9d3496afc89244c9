#include "train/option_reader.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

enum class Level { kLow, kHigh };

struct Options {
  double real = 1;
  bool flag = false;
  int64_t count = 0;
  std::optional<double> maybe = 2;
  Level level = Level::kLow;
};

Status Read(const NamedSettings& settings, Options& options) {
  OptionReader reader("it", settings);
  reader.Real("real", options.real);
  reader.Bool("flag", options.flag);
  reader.Integer("count", options.count);
  reader.OptionalReal("maybe", options.maybe);
  reader.Choice("level", {{"low", Level::kLow}, {"high", Level::kHigh}}, options.level);
  return reader.Finish();
}

TEST(OptionReaderTest, WhatIsNotGivenKeepsItsDefault) {
  Options options;
  ASSERT_TRUE(Read({{"real", "2.5"}}, options).ok());
  EXPECT_EQ(options.real, 2.5);
  EXPECT_EQ(options.maybe, 2);
}

TEST(OptionReaderTest, EveryKindIsRead) {
  Options options;
  ASSERT_TRUE(
      Read({{"flag", "true"}, {"count", "-3"}, {"maybe", "none"}, {"level", "high"}}, options)
          .ok());
  EXPECT_TRUE(options.flag);
  EXPECT_EQ(options.count, -3);
  EXPECT_FALSE(options.maybe.has_value());
  EXPECT_EQ(options.level, Level::kHigh);
}

TEST(OptionReaderTest, ErrorsNameSettingValueAndRule) {
  Options options;
  EXPECT_EQ(Read({{"real", "1x"}}, options).message(), "it.real = 1x: must be a number");
  EXPECT_EQ(Read({{"real", "nan"}}, options).message(), "it.real = nan: must be a number");
  EXPECT_EQ(Read({{"count", "1.5"}}, options).message(), "it.count = 1.5: must be an integer");
  EXPECT_EQ(Read({{"maybe", "?"}}, options).message(), "it.maybe = ?: must be a number or none");
  EXPECT_EQ(Read({{"level", "up"}}, options).message(), "it.level = up: must be one of low, high");
  EXPECT_EQ(Read({{"reel", "1"}}, options).message(), "it.reel = 1: is no setting of it");
  EXPECT_EQ(Read({{"real", "1"}, {"real", "2"}}, options).message(), "it.real = 2: is given twice");
}

}  // namespace
}  // namespace pace
