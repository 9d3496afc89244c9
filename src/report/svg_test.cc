#include "report/svg.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace pace {
namespace {

TEST(EscapeTest, MarkupBecomesText) {
  EXPECT_EQ(Escape("<a href=\"x\" onload='y'>&amp;</a>"),
            "&lt;a href=&quot;x&quot; onload=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;");
}

TEST(EscapeTest, WhatIsNotTextIsReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(Escape("caf\xc3\xa9 \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_EQ(Escape("a\xff\x01z"), "a" + bad + bad + "z");
  EXPECT_EQ(Escape("\xed\xa0\x80"), bad + bad + bad);  // half a surrogate pair
  EXPECT_EQ(Escape("\xc0\xaf"), bad + bad);            // an overlong slash
  EXPECT_EQ(Escape("\xe2\x82"), bad + bad);            // cut short
  EXPECT_EQ(Escape("a\nb"), "a b");
}

TEST(SvgTest, WritesTitleDescriptionAndShapes) {
  Svg svg(100, 50, {"A <title>", "what it shows"});
  svg.Rect(1.04, 2, 3, 4, {.classes = "mark f0", .tooltip = "x & y", .run = 2});
  const Point points[] = {{0, 0}, {1.26, 2}};
  svg.Polyline(points, {.classes = "line", .dashes = "4 3"});
  const std::string text = std::move(svg).Finish();
  EXPECT_EQ(text,
            "<svg role=\"img\" viewBox=\"0 0 100 50\"><title>A &lt;title&gt;</title><desc>what it "
            "shows</desc><rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" class=\"mark f0\" "
            "data-run=\"2\"><title>x &amp; y</title></rect><path d=\"M0 0L1.3 2\" class=\"line\" "
            "stroke-dasharray=\"4 3\"/></svg>");
}

TEST(SvgTest, CoordinatesAreAlwaysFinite) {
  Svg svg(100, 50, {"", ""});
  const double inf = std::numeric_limits<double>::infinity();
  svg.Rect(inf, -inf, inf - inf, -3, {.classes = "mark"});
  const std::string text = std::move(svg).Finish();
  EXPECT_EQ(text.find("inf"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_NE(text.find("height=\"0\""), std::string::npos);
}

TEST(EscapeTest, LinesMayStay) {
  EXPECT_EQ(EscapeLines("a\n<b>\n"), "a\n&lt;b&gt;\n");
  EXPECT_EQ(Escape("a\nb"), "a b");
}

}  // namespace
}  // namespace pace
