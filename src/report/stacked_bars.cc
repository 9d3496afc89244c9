#include "report/stacked_bars.h"

#include <algorithm>
#include <utility>

#include "core/concat.h"
#include "report/axes.h"
#include "report/svg.h"

namespace pace {
namespace {

constexpr double kWidth = 390;
constexpr double kLeft = 8;
constexpr double kRight = kWidth - 66;  // room for the total behind the longest bar
constexpr double kTop = 4;
constexpr double kNameHeight = 18;
constexpr double kBarHeight = 20;
constexpr double kBesideHeight = 7;
constexpr double kGap = 12;
constexpr double kRow = kNameHeight + kBarHeight + kBesideHeight + kGap;

double Total(const Bar& bar) {
  double total = 0;
  for (const double part : bar.parts) total += part;
  return total;
}

double Longest(const std::vector<Bar>& bars) {
  double longest = 0;
  for (const Bar& bar : bars) {
    longest = std::max({longest, Total(bar), bar.beside, bar.reference.value_or(0)});
  }
  return longest;
}

void DrawReference(Svg& svg, const StackedBars& chart, const Bar& bar, double x, double y) {
  const double middle = y + kBarHeight / 2;
  const Point diamond[] = {{x, middle - 7}, {x + 7, middle}, {x, middle + 7}, {x - 7, middle}};
  svg.Line({x, y - 3}, {x, y + kBarHeight + 3}, {.classes = "reference-line"});
  svg.Polygon(diamond, {.classes = "mark reference",
                        .tooltip = Concat(bar.name, ": reference ", *bar.reference, chart.unit)});
}

void DrawBar(Svg& svg, const StackedBars& chart, const Bar& bar, const Scale& x, double top) {
  const double y = top + kNameHeight;
  svg.Text({kLeft, top + 13}, Shortened(bar.name, 48), Anchor::kStart, "bar-name");
  double begin = 0;
  for (size_t i = 0; i < chart.parts.size(); ++i) {
    const double value = bar.parts.at(i);
    if (value > 0) {
      const std::string classes = Concat("mark part ", chart.parts[i].classes);
      svg.Rect(x(begin), y, x(begin + value) - x(begin), kBarHeight,
               {.classes = classes,
                .tooltip = Concat(bar.name, ", ", chart.parts[i].name, ": ", Readable(value),
                                  chart.unit)});
    }
    begin += value;
  }
  if (bar.beside > 0) {
    const std::string classes = Concat("mark ", chart.beside.classes);
    svg.Rect(x(0), y + kBarHeight + 1, x(bar.beside) - x(0), kBesideHeight,
             {.classes = classes,
              .tooltip = Concat(bar.name, ", ", chart.beside.name, ": ", Readable(bar.beside),
                                chart.unit)});
  }
  double label = x(begin);
  if (bar.reference.has_value()) {
    DrawReference(svg, chart, bar, x(*bar.reference), y);
    const double marker = x(*bar.reference);
    if (marker > label - 10 && marker < label + 70) label = marker + 8;
  }
  svg.Text({label + 6, y + 15}, Concat(Readable(begin), chart.unit), Anchor::kStart, "bar-total");
}

}  // namespace

std::string RenderStackedBars(const StackedBars& chart) {
  if (chart.bars.empty()) return "";
  const Ticks ticks = NiceTicks(0, Longest(chart.bars), 5);
  const Scale x(0, ticks.hi(), kLeft, kRight);
  const double bottom = kTop + kRow * static_cast<double>(chart.bars.size());
  Svg svg(kWidth, bottom + 38, {chart.figure.caption, chart.description});
  for (const double value : ticks.values) {
    svg.Line({x(value), kTop}, {x(value), bottom}, {.classes = "grid"});
    svg.Text({x(value), bottom + 15}, TickLabel(value, ticks.step), Anchor::kMiddle, "tick");
  }
  svg.Text({(kLeft + kRight) / 2, bottom + 33}, chart.x_name, Anchor::kMiddle, "name");
  for (size_t i = 0; i < chart.bars.size(); ++i) {
    DrawBar(svg, chart, chart.bars[i], x, kTop + kRow * static_cast<double>(i));
  }
  Figure figure = chart.figure;
  for (const BarPart& part : chart.parts) {
    figure.key.push_back({.label = part.name, .classes = Concat("part ", part.classes)});
  }
  const auto has_beside = [](const Bar& bar) { return bar.beside > 0; };
  if (std::any_of(chart.bars.begin(), chart.bars.end(), has_beside)) {
    figure.key.push_back({.label = chart.beside.name, .classes = chart.beside.classes});
  }
  const auto has_reference = [](const Bar& bar) { return bar.reference.has_value(); };
  if (std::any_of(chart.bars.begin(), chart.bars.end(), has_reference)) {
    figure.key.push_back({.label = "reference, measured elsewhere",
                          .classes = "reference",
                          .shape = KeyShape::kDiamond});
  }
  return RenderFigure(figure, std::move(svg).Finish());
}

}  // namespace pace
