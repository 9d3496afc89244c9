#include "core/json_record.h"

#include <gtest/gtest.h>

namespace pace {

struct RecordedPoint {
  int64_t x = 0;
  double y = 0;
  friend bool operator==(const RecordedPoint&, const RecordedPoint&) = default;
};
template <typename V>
void JsonItems(V& v, RecordedPoint& point) {
  v(point.x);
  v(Within(point.y, -1, 1, "a cosine"));
}

enum class RecordedColor { kRed, kBlue };
std::string_view Name(RecordedColor color) {
  return color == RecordedColor::kRed ? "red" : "blue";
}
std::optional<RecordedColor> RecordedColorFromName(std::string_view name) {
  if (name == "red") return RecordedColor::kRed;
  return name == "blue" ? std::optional(RecordedColor::kBlue) : std::nullopt;
}

struct RecordedShape {
  std::string name = {};
  RecordedColor color = RecordedColor::kRed;
  std::optional<RecordedColor> border = {};
  std::vector<RecordedPoint> points = {};
  std::map<std::string, int64_t> sizes = {};
  std::optional<PolicyVersion> version = {};
  Seconds age{0};
  bool hidden = false;
  bool skips = false;
  friend bool operator==(const RecordedShape&, const RecordedShape&) = default;
};
template <typename V>
void JsonKeys(V& v, RecordedShape& shape) {
  v("name", shape.name);
  v("color", AsName(shape.color, RecordedColorFromName, "must be red or blue"));
  v.Optional("border", AsName(shape.border, RecordedColorFromName, "must be red or blue"),
             shape.border.has_value());
  v("points", shape.points);
  v("sizes", shape.sizes);
  v("version", shape.version);
  v("age", shape.age);
  v.Optional("hidden", shape.hidden, shape.hidden);
  if (shape.skips) v.SkipUnknown();
}

namespace {

std::string ErrorOf(std::string_view json) {
  RecordedShape shape;
  return FromJson(json, shape).message();
}

constexpr char kShape[] =
    R"({"name":"a","color":"blue","points":[[1,0.5],[2,-1]],"sizes":{"x\"":3},"version":null,"age":2})";

TEST(JsonRecordTest, WhatIsWrittenReadsBackToTheSameValue) {
  RecordedShape shape;
  ASSERT_EQ(ErrorOf(kShape), "");
  ASSERT_TRUE(FromJson(kShape, shape).ok());
  EXPECT_EQ(shape.color, RecordedColor::kBlue);
  EXPECT_EQ(shape.points, (std::vector<RecordedPoint>{{1, 0.5}, {2, -1}}));
  EXPECT_EQ(shape.sizes.at("x\""), 3);
  EXPECT_FALSE(shape.version.has_value());
  EXPECT_EQ(JsonOf(shape), kShape);
  shape.border = RecordedColor::kRed;
  shape.version = PolicyVersion(7);
  shape.hidden = true;
  RecordedShape again;
  ASSERT_TRUE(FromJson(JsonOf(shape), again).ok());
  EXPECT_EQ(again, shape);
}

TEST(JsonRecordTest, KeysThatAreMissingDoubledOrUnknownAreErrors) {
  EXPECT_EQ(ErrorOf("{}"), "missing key name");
  EXPECT_EQ(ErrorOf(R"({"name":"a","name":"b"})"), "name: given twice in one object");
  EXPECT_EQ(ErrorOf(R"({"size":1})"), "size: unknown key");
  EXPECT_EQ(ErrorOf(R"({"sizes":{"a":1,"a":2}})"), "sizes.a: given twice in one object");
  RecordedShape lenient;
  lenient.skips = true;
  const std::string later = std::string(kShape, sizeof(kShape) - 2) + R"(,"later":[{}]})";
  EXPECT_TRUE(FromJson(later, lenient).ok());
  EXPECT_FALSE(FromJson(later + "x", lenient).ok());
}

TEST(JsonRecordTest, ErrorsNameThePathTheValueAndTheRule) {
  EXPECT_EQ(ErrorOf(R"({"color":"green"})"), "color = green: must be red or blue");
  EXPECT_EQ(ErrorOf(R"({"points":[[1,2]]})"), "points[0][1] = 2: must be <= 1 (a cosine)");
  EXPECT_EQ(ErrorOf(R"({"points":[[1]]})"), "points[0]: must have 2 items");
  EXPECT_EQ(ErrorOf(R"({"points":[[1,1,1]]})"), "points[0][2]: must have 2 items");
  EXPECT_EQ(ErrorOf(R"({"age":-1})").find("age = -1: must be >= 0"), 0U);
}

}  // namespace
}  // namespace pace
