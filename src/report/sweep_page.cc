#include "report/sweep_page.h"

#include <algorithm>

#include "core/check.h"
#include "core/concat.h"
#include "report/axes.h"
#include "report/figure.h"
#include "report/page_parts.h"
#include "report/svg.h"
#include "report/table.h"

namespace pace {
namespace {

constexpr int kNumTicks = 5;
constexpr double kMarkSize = 4;

// Colours of the page: settings off the front, on it, and the one to take.
constexpr std::string_view kOffFront = "mark f7";
constexpr std::string_view kOnFront = "mark f0";
constexpr std::string_view kBest = "mark f1";

std::string_view LookOf(const SweepPoint& point) {
  if (point.is_best) return kBest;
  return point.on_front ? kOnFront : kOffFront;
}

struct Scatter {
  Figure figure;
  std::string description;
  std::string y_name;
  double SweepPoint::* y;
};

std::string RenderScatter(const Scatter& scatter, const std::vector<SweepPoint>& points) {
  double x_lo = points.front().seconds, x_hi = x_lo, y_hi = 0;
  for (const SweepPoint& point : points) {
    x_lo = std::min(x_lo, point.seconds);
    x_hi = std::max(x_hi, point.seconds);
    y_hi = std::max(y_hi, point.*scatter.y);
  }
  Plot plot(NiceTicks(x_lo, x_hi, kNumTicks), NiceTicks(0, y_hi, kNumTicks));
  plot.MakeRoomForLabels();
  Svg svg(kChartWidth, kChartHeight, {scatter.figure.caption, scatter.description});
  DrawAxes(svg, plot, "seconds per trained prompt", scatter.y_name);
  const Scale x = plot.XScale(), y = plot.YScale();
  // The front and the best are drawn last, above the others.
  for (const int layer : {0, 1, 2}) {
    for (const SweepPoint& point : points) {
      if ((point.is_best ? 2 : point.on_front ? 1 : 0) != layer) continue;
      const double at_x = x(point.seconds), at_y = y(point.*scatter.y);
      const double size = point.is_best ? 1.5 * kMarkSize : kMarkSize;
      const Point corners[] = {
          {at_x, at_y - size}, {at_x + size, at_y}, {at_x, at_y + size}, {at_x - size, at_y}};
      svg.Polygon(corners, {.classes = LookOf(point),
                            .tooltip = Concat(point.setting, ": ", Readable(point.seconds), " s, ",
                                              Readable(point.*scatter.y))});
    }
  }
  return RenderFigure(scatter.figure, std::move(svg).Finish());
}

std::string RenderPoints(const std::vector<SweepPoint>& points) {
  Table table{.caption = "All settings",
              .corner = "setting",
              .columns = {"s per step", "s per prompt", "waiting", "generation", "rejected",
                          "never trained", ""},
              .rows = {}};
  for (const SweepPoint& point : points) {
    table.rows.push_back(
        {point.setting,
         {Readable(point.step_seconds), Readable(point.seconds), Readable(point.waiting),
          Readable(point.generation), Percent(point.rejected), Percent(point.wasted),
          point.is_best    ? "best"
          : point.on_front ? "front"
                           : ""}});
  }
  return RenderTable(table);
}

}  // namespace

std::string RenderSweepPage(const SweepPage& page) {
  PACE_CHECK(!page.points.empty(), "a sweep without points");
  const std::vector<KeyEntry> key = {{"best", std::string(kBest), KeyShape::kDiamond},
                                     {"front", std::string(kOnFront), KeyShape::kDiamond},
                                     {"other", std::string(kOffFront), KeyShape::kDiamond}};
  std::string out = Concat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" "
      "content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>",
      Escape(page.title), " \u2013 pace sweep</title>\n<style>", PageStyle(),
      "</style></head>\n<body>", PagePatterns(), "<main>\n<header><p class=\"kicker\">pace sim",
      " --sweep</p><h1>", Escape(page.title), "</h1><p>", Escape(page.advice),
      "</p></header>\n<section><div class=\"charts\">");
  out += RenderScatter({.figure = {.name = "sweep-waiting",
                                   .caption = "Time and freshness",
                                   .note = "On the front no other setting is better in time, "
                                           "waiting staleness and tokens never trained on.",
                                   .key = key},
                        .description = "Waiting staleness over seconds per trained prompt",
                        .y_name = "waiting staleness, steps",
                        .y = &SweepPoint::waiting},
                       page.points);
  out += RenderScatter({.figure = {.name = "sweep-wasted",
                                   .caption = "Time and waste",
                                   .note = "Share of generated tokens that no step trained on.",
                                   .key = key},
                        .description = "Share of tokens never trained on over seconds per trained "
                                       "prompt",
                        .y_name = "tokens never trained on, share",
                        .y = &SweepPoint::wasted},
                       page.points);
  out += Concat("</div>", RenderPoints(page.points), "</section></main>\n<script>", PageScript(),
                "</script></body></html>\n");
  return out;
}

}  // namespace pace
