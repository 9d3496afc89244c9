#include "report/chart.h"

#include <gtest/gtest.h>

#include <string>

#include "report/table.h"

namespace pace {
namespace {

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(RunLookTest, NoTwoOfSixteenRunsLookTheSame) {
  for (size_t a = 0; a < 16; ++a) {
    for (size_t b = a + 1; b < 16; ++b) {
      EXPECT_FALSE(RunStroke(a) == RunStroke(b) && RunDashes(a) == RunDashes(b)) << a << " " << b;
    }
  }
}

TEST(ShortenedTest, NeverSplitsACharacter) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "abc\u2026");
  EXPECT_EQ(Shortened("\u00e9\u00e9\u00e9", 2), "\u00e9\u00e9\u2026");
}

TEST(LineChartTest, LinesWithoutPointsAreLeftOut) {
  Chart chart;
  chart.figure = {.name = "x", .caption = "X"};
  chart.lines = {{0, "a", {{0, 1}, {1, 2}}}, {1, "b", {}}};
  const std::string html = RenderLines(chart);
  EXPECT_EQ(CountOf(html, "class=\"mark"), 1u);
  EXPECT_EQ(CountOf(html, "data-key="), 1u);
  chart.lines = {{1, "b", {}}};
  EXPECT_EQ(RenderLines(chart), "");
}

TEST(LineChartTest, BandsAndFaintLinesStandBehindTheLineAndInsideThePlot) {
  Chart chart;
  chart.figure = {.name = "x", .caption = "X"};
  chart.x_name = "hours";
  chart.from_zero = false;
  chart.lines = {{.run = 1,
                  .name = "a",
                  .points = {{0, 60}, {1, 70}},
                  .faint = {{0, 62}, {1, 68}},
                  .lower = {{0, 50}, {1, 60}},
                  .upper = {{0, 70}, {1, 80}},
                  .dots = true}};
  const std::string html = RenderLines(chart);
  // The plot spans y 24 (value 80) to 180 (value 50).
  const size_t band = html.find("M44 76L330 24L330 128L44 180Z");
  const size_t line = html.find("mark line s1");
  EXPECT_LT(band, line) << html;
  EXPECT_LT(html.find("mark faint s1"), line);
  EXPECT_EQ(CountOf(html, "mark dot s1"), 2u);
  EXPECT_NE(html.find("data-x=\"hours\""), std::string::npos);
  chart.from_zero = true;
  EXPECT_NE(RenderLines(chart), html);
}

TEST(StackedAreasTest, LayersStandOnEachOther) {
  Chart chart;
  chart.figure = {.name = "x", .caption = "X"};
  chart.layers = {{"low", "pool", {{0, 1}, {10, 1}}, 1},
                  {"high", "generation", {{0, 1}, {10, 3}}, 2}};
  EXPECT_EQ(StackTop(chart.layers), 4);
  const std::string html = RenderAreas(chart);
  // The plot spans y 24 (value 4) to 180 (value 0): low is 39 high, high ends on top.
  EXPECT_NE(html.find("M44 141L330 141L330 180L44 180Z"), std::string::npos) << html;
  EXPECT_NE(html.find("M44 102L330 24L330 141L44 141Z"), std::string::npos) << html;
}

TEST(VerdictHistogramTest, BarsCountRetainedAndRejected) {
  Chart text;
  text.figure = {.name = "x", .caption = "X"};
  const std::string html = RenderVerdicts(text, 0, {1, 1, 2}, {2, 5});
  EXPECT_NE(html.find("2 retained"), std::string::npos);
  EXPECT_EQ(CountOf(html, "1 rejected"), 2u);
  EXPECT_EQ(RenderVerdicts(text, 0, {}, {}), "");
}

TEST(StackedBarsTest, PartsMeetAndTheTotalIsWritten) {
  Chart chart;
  chart.figure = {.name = "time", .caption = "T"};
  chart.unit = " s";
  chart.parts = {{"train", "a"}, {"wait", "b"}};
  chart.beside = {"hidden", "c"};
  chart.bars = {{"one", {30, 20}, 5, 100.0}, {"two", {10, 0}, 0, {}}};
  const std::string html = RenderBars(chart);
  EXPECT_EQ(CountOf(html, "class=\"mark part"), 3u);
  EXPECT_EQ(CountOf(html, "class=\"mark c\""), 1u);
  EXPECT_EQ(CountOf(html, "mark reference"), 1u);
  EXPECT_NE(html.find(">50.0 s<"), std::string::npos);
  EXPECT_NE(html.find(">10.0 s<"), std::string::npos);
}

TEST(TableTest, CellsAreText) {
  const std::string html = RenderTable(
      {.caption = "C", .corner = "run", .columns = {"a"}, .rows = {{"<b>", {"<i>"}, {}}}});
  EXPECT_EQ(html.find("<b>"), std::string::npos);
  EXPECT_EQ(html.find("<i>"), std::string::npos);
}

}  // namespace
}  // namespace pace
