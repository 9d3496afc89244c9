#include "report/sweep_page.h"

#include <utility>

#include "core/check.h"
#include "core/concat.h"
#include "report/axes.h"
#include "report/chart.h"
#include "report/page.h"
#include "report/svg.h"
#include "report/table.h"

namespace pace {
namespace {

constexpr const char* kScatterX = "seconds per trained prompt";
constexpr double kMarkSize = 4;

// Colours of the page: settings off the front, on it, and the one to take.
constexpr std::string_view kOffFront = "mark f7";
constexpr std::string_view kOnFront = "mark f0";
constexpr std::string_view kBest = "mark f1";

std::string_view LookOf(const SweepPoint& point) {
  if (point.is_best) return kBest;
  return point.on_front ? kOnFront : kOffFront;
}

std::string Scatter(const Chart& chart, double SweepPoint::* y,
                    const std::vector<SweepPoint>& points) {
  std::vector<ScatterPoint> drawn;
  // The front and the best are drawn last, above the others.
  for (const int layer : {0, 1, 2}) {
    for (const SweepPoint& point : points) {
      if ((point.is_best ? 2 : point.on_front ? 1 : 0) != layer) continue;
      drawn.push_back({.at = {point.seconds, point.*y},
                       .size = point.is_best ? 1.5 * kMarkSize : kMarkSize,
                       .classes = std::string(LookOf(point)),
                       .tooltip = Concat(point.setting, ": ", Readable(point.seconds), " s, ",
                                         Readable(point.*y))});
    }
  }
  return RenderScatter(chart, drawn);
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
  std::string out =
      Concat("<header><p class=\"kicker\">pace sim --sweep</p><h1>", Escape(page.title), "</h1><p>",
             Escape(page.advice), "</p></header>\n<section><div class=\"charts\">");
  out += Scatter({.figure = {.name = "sweep-waiting",
                             .caption = "Time and freshness",
                             .note = "On the front no other setting is better in time, "
                                     "waiting staleness and tokens never trained on.",
                             .key = key},
                  .description = "Waiting staleness over seconds per trained prompt",
                  .x_name = kScatterX,
                  .y_name = "waiting staleness, steps"},
                 &SweepPoint::waiting, page.points);
  out += Scatter({.figure = {.name = "sweep-wasted",
                             .caption = "Time and waste",
                             .note = "Share of generated tokens that no step trained on.",
                             .key = key},
                  .description = "Share of tokens never trained on over seconds per trained "
                                 "prompt",
                  .x_name = kScatterX,
                  .y_name = "tokens never trained on, share"},
                 &SweepPoint::wasted, page.points);
  out += Concat("</div>", RenderPoints(page.points), "</section>");
  return RenderPage({.title = Concat(page.title, " \u2013 pace sweep"), .content = std::move(out)});
}

}  // namespace pace
