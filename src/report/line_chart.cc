#include "report/line_chart.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/concat.h"
#include "report/axes.h"

namespace pace {
namespace {

constexpr int kNumXTicks = 5;
constexpr int kNumYTicks = 5;

struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
  bool empty() const { return lo > hi; }
};

// What the page's script needs to turn the pointer's place into a reading.
std::string PlotData(const Plot& plot) {
  return Concat(plot.left, ",", plot.right, ",", plot.top, ",", plot.bottom, ",", plot.x_lo, ",",
                plot.x_hi, ",", plot.y_ticks.lo(), ",", plot.y_ticks.hi());
}

std::vector<Point> Placed(const std::vector<Point>& points, const Plot& plot) {
  const Scale x = plot.XScale(), y = plot.YScale();
  std::vector<Point> placed;
  placed.reserve(points.size());
  for (const Point& point : points) placed.push_back({x(point.x), y(point.y)});
  return placed;
}

void DrawLine(Svg& svg, const RunLine& line, const Plot& plot) {
  const std::string stroke = RunStroke(line.run);
  const std::string classes = Concat("mark line ", stroke);
  svg.Polyline(Placed(line.points, plot), {.classes = classes,
                                           .tooltip = line.name,
                                           .run = line.run,
                                           .dashes = line.dashes.value_or(RunDashes(line.run))});
  if (!line.dots) return;
  const std::string dot = Concat("mark dot ", stroke);
  for (const Point& point : Placed(line.points, plot)) {
    svg.Line(point, point, {.classes = dot, .run = line.run});
  }
}

// What stands behind every line.
void DrawGround(Svg& svg, const RunLine& line, const Plot& plot) {
  if (!line.lower.empty()) {
    const std::string classes = Concat("mark band ", RunFill(line.run));
    svg.Band(Placed(line.lower, plot), Placed(line.upper, plot),
             {.classes = classes, .run = line.run});
  }
  if (!line.faint.empty()) {
    const std::string classes = Concat("mark faint ", RunStroke(line.run));
    svg.Polyline(Placed(line.faint, plot), {.classes = classes, .run = line.run});
  }
}

// Steps are counted.
Ticks XTicks(const std::string& name, double lo, double hi) {
  return name == "step" ? WholeTicks(lo, hi, kNumXTicks) : NiceTicks(lo, hi, kNumXTicks);
}

KeyEntry KeyOf(const RunLine& line) {
  KeyEntry entry = RunLineKey(line.run, Shortened(line.name, 40));
  if (!line.dashes.has_value()) return entry;
  entry.dashes = *line.dashes;
  entry.run.reset();
  return entry;
}

void DrawLimits(Svg& svg, const LineChart& chart, const Plot& plot) {
  for (const LimitLine& limit : chart.limits) {
    const double y = plot.YScale()(limit.y);
    svg.Line({plot.left, y}, {plot.right, y}, {.classes = "limit", .tooltip = limit.name});
  }
}

}  // namespace

std::string RenderLineChart(const LineChart& chart) {
  Range x, y;
  for (const RunLine& line : chart.lines) {
    for (const Point& point : line.points) x.Add(point.x);
    for (const auto* points : {&line.points, &line.faint, &line.lower, &line.upper}) {
      for (const Point& point : *points) y.Add(point.y);
    }
  }
  if (x.empty()) return "";
  for (const LimitLine& limit : chart.limits) y.Add(limit.y);
  if (chart.from_zero || (y.lo > 0 && y.lo < 0.6 * y.hi)) y.Add(0);
  Plot plot(XTicks(chart.x_name, x.lo, x.hi), NiceTicks(y.lo, y.hi, kNumYTicks));
  plot.MakeRoomForLabels();
  // An axis that would stay empty behind the last value ends there.
  if (x.hi > x.lo && plot.x_hi - x.hi > 0.06 * (plot.x_hi - plot.x_lo)) plot.x_hi = x.hi;
  Svg svg(kChartWidth, kChartHeight, {chart.figure.caption, chart.description});
  svg.SetData("plot", PlotData(plot));
  svg.SetData("x", chart.x_name);
  DrawAxes(svg, plot, chart.x_name, chart.y_name);
  DrawLimits(svg, chart, plot);
  for (const RunLine& line : chart.lines) DrawGround(svg, line, plot);
  Figure figure = chart.figure;
  for (const RunLine& line : chart.lines) {
    if (line.points.empty()) continue;
    DrawLine(svg, line, plot);
    figure.key.push_back(KeyOf(line));
  }
  for (const LimitLine& limit : chart.limits) {
    figure.key.push_back(
        {.label = limit.name, .classes = "limit", .shape = KeyShape::kLine, .dashes = "1 3"});
  }
  return RenderFigure(figure, std::move(svg).Finish());
}

double StackTop(const std::vector<StackLayer>& layers) {
  double top = 0;
  if (layers.empty()) return top;
  for (size_t i = 0; i < layers.front().points.size(); ++i) {
    double height = 0;
    for (const StackLayer& layer : layers) height += layer.points.at(i).y;
    top = std::max(top, height);
  }
  return top;
}

std::string RenderStackedAreas(const StackedAreas& chart) {
  if (chart.layers.empty() || chart.layers.front().points.empty()) return "";
  Range x;
  for (const Point& point : chart.layers.front().points) x.Add(point.x);
  const double top = chart.y_top.value_or(StackTop(chart.layers));
  const Plot plot(XTicks(chart.x_name, x.lo, x.hi), NiceTicks(0, top, kNumYTicks));
  Svg svg(kChartWidth, kChartHeight, {chart.figure.caption, chart.description});
  DrawAxes(svg, plot, chart.x_name, chart.y_name);
  std::vector<Point> lower = chart.layers.front().points;
  for (Point& point : lower) point.y = 0;
  Figure figure = chart.figure;
  for (const StackLayer& layer : chart.layers) {
    std::vector<Point> upper = lower;
    for (size_t i = 0; i < upper.size(); ++i) upper[i].y += layer.points.at(i).y;
    const std::string label = Concat(layer.name, " ", Readable(layer.mean));
    const std::string classes = Concat("mark layer ", layer.classes);
    svg.Band(Placed(lower, plot), Placed(upper, plot), {.classes = classes, .tooltip = label});
    figure.key.push_back({.label = label, .classes = layer.classes});
    lower = std::move(upper);
  }
  if (StackTop(chart.layers) == 0) figure.note = "No staleness: all of it was on-policy.";
  return RenderFigure(figure, std::move(svg).Finish());
}

}  // namespace pace
