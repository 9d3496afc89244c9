#include "report/chart.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/concat.h"
#include "report/axes.h"

namespace pace {
namespace {

constexpr int kNumTicks = 5;  // of each axis
constexpr size_t kMostBins = 26;
constexpr size_t kMostCurvePoints = 120;

struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
  bool empty() const { return lo > hi; }
};

// The picture of a chart, drawn in the units of its axes.
class Canvas {
 public:
  Canvas(const Chart& chart, const Plot& plot)
      : plot_(plot),
        x_(plot.XScale()),
        y_(plot.YScale()),
        svg_(kChartWidth, kChartHeight, {chart.figure.caption, chart.description}) {
    DrawAxes(svg_, plot, chart.x_name, chart.y_name);
  }

  const Plot& plot() const { return plot_; }
  Svg& svg() { return svg_; }
  Point Placed(Point point) const {
    return {std::clamp(x_(point.x), plot_.left, plot_.right), y_(point.y)};
  }
  std::vector<Point> Placed(std::vector<Point> points) const {
    for (Point& point : points) point = Placed(point);
    return points;
  }

  void Line(const std::vector<Point>& points, const Look& look) {
    svg_.Polyline(Placed(points), look);
  }
  void Band(const std::vector<Point>& lower, const std::vector<Point>& upper, const Look& look) {
    svg_.Band(Placed(lower), Placed(upper), look);
  }
  // From edge to edge, a little apart from its neighbours.
  void Bar(Point low, Point high, const Look& look) {
    const Point from = Placed(low), to = Placed(high);
    svg_.Rect(from.x + 0.6, to.y, to.x - from.x - 1.2, from.y - to.y, look);
  }
  // Through the whole plot.
  void Vertical(double x, const Look& look) {
    const double at = Placed({x, 0}).x;
    svg_.Line({at, plot_.top}, {at, plot_.bottom}, look);
  }
  void Horizontal(double y, const Look& look) {
    svg_.Line({plot_.left, y_(y)}, {plot_.right, y_(y)}, look);
  }

  std::string Finish(const Figure& figure) && {
    return RenderFigure(figure, std::move(svg_).Finish());
  }

 private:
  Plot plot_;
  Scale x_, y_;
  Svg svg_;
};

// Steps are counted.
Ticks XTicks(const std::string& name, const Range& x) {
  return name == "step" ? WholeTicks(x.lo, x.hi, kNumTicks) : NiceTicks(x.lo, x.hi, kNumTicks);
}

void DrawLine(Canvas& canvas, const RunLine& line) {
  const std::string stroke = RunStroke(line.run);
  canvas.Line(line.points, {.classes = "mark line " + stroke,
                            .tooltip = line.name,
                            .run = line.run,
                            .dashes = line.dashes.value_or(RunDashes(line.run))});
  if (!line.dots) return;
  for (const Point& point : line.points) {
    canvas.Line({point, point}, {.classes = "mark dot " + stroke, .run = line.run});
  }
}

// Below every line.
void DrawGround(Canvas& canvas, const RunLine& line) {
  if (!line.lower.empty()) {
    canvas.Band(line.lower, line.upper,
                {.classes = "mark band " + RunFill(line.run), .run = line.run});
  }
  if (!line.faint.empty()) {
    canvas.Line(line.faint, {.classes = "mark faint " + RunStroke(line.run), .run = line.run});
  }
}

KeyEntry KeyOf(const RunLine& line) {
  KeyEntry entry = RunLineKey(line.run, Shortened(line.name, 40));
  if (!line.dashes.has_value()) return entry;
  entry.dashes = *line.dashes;
  entry.run.reset();
  return entry;
}

// A plot whose x axis ends where the bins do.
Plot BinPlot(const Bins& bins, double y_top) {
  Plot plot(NiceTicks(bins.lo, bins.hi(), kNumTicks), NiceTicks(0, y_top, kNumTicks));
  plot.x_lo = bins.lo;
  plot.x_hi = bins.hi();
  return plot;
}

Bins SharedBins(const Sample& a, const Sample& b) {
  const Sample* const samples[] = {&a, &b};
  return ChooseBins(samples, kMostBins);
}

double EdgeOf(const Bins& bins, size_t i) {
  return bins.lo + bins.width * static_cast<double>(i);
}

std::string BinName(const Bins& bins, size_t i) {
  const double lo = EdgeOf(bins, i);
  const std::string from = TickLabel(lo, bins.width);
  if (bins.open_above && i + 1 == bins.count) return Concat("from ", from);
  return Concat(from, " to ", TickLabel(lo + bins.width, bins.width));
}

// Percent of the sample in each bin.
std::vector<double> Shares(const Bins& bins, const Sample& sample) {
  std::vector<double> shares;
  for (const int64_t count : CountInto(bins, sample)) {
    shares.push_back(static_cast<double>(count) / static_cast<double>(sample.size()));
  }
  return shares;
}

// A line and a triangle on the axis at the mean.
void DrawMean(Canvas& canvas, const NamedSample& sample, std::string_view dashes) {
  const std::optional<double> mean = SampleMean(sample.values);
  if (!mean.has_value()) return;
  canvas.Vertical(
      *mean,
      {.classes = "mark mean-line " + RunStroke(sample.run), .run = sample.run, .dashes = dashes});
  const double x = canvas.Placed({*mean, 0}).x, y = canvas.plot().bottom;
  const Point triangle[] = {{x, y - 10}, {x - 6, y}, {x + 6, y}};
  canvas.svg().Polygon(triangle, {.classes = "mark mean " + RunFill(sample.run),
                                  .tooltip = Concat("mean of ", sample.name, ": ", Readable(*mean)),
                                  .run = sample.run});
}

// The geometry of horizontal bars.
constexpr double kBarsWidth = 390;
constexpr double kLeft = 8;
constexpr double kRight = kBarsWidth - 66;  // room for the total after the longest bar
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

void DrawReference(Svg& svg, const Bar& bar, const std::string& unit, double x, double y) {
  const double middle = y + kBarHeight / 2;
  const Point diamond[] = {{x, middle - 7}, {x + 7, middle}, {x, middle + 7}, {x - 7, middle}};
  svg.Line({x, y - 3}, {x, y + kBarHeight + 3}, {.classes = "reference-line"});
  svg.Polygon(diamond, {.classes = "mark reference",
                        .tooltip = Concat(bar.name, ": reference ", *bar.reference, unit)});
}

void DrawBar(Svg& svg, const Chart& chart, const Bar& bar, const Scale& x, double top) {
  const double y = top + kNameHeight;
  const auto tooltip = [&](const BarPart& part, double value) {
    return Concat(bar.name, ", ", part.name, ": ", Readable(value), chart.unit);
  };
  svg.Text({kLeft, top + 13}, Shortened(bar.name, 48), Anchor::kStart, "bar-name");
  double begin = 0;
  for (size_t i = 0; i < chart.parts.size(); ++i) {
    const double value = bar.parts.at(i);
    if (value > 0) {
      svg.Rect(x(begin), y, x(begin + value) - x(begin), kBarHeight,
               {.classes = "mark part " + chart.parts[i].classes,
                .tooltip = tooltip(chart.parts[i], value)});
    }
    begin += value;
  }
  if (bar.beside > 0) {
    svg.Rect(
        x(0), y + kBarHeight + 1, x(bar.beside) - x(0), kBesideHeight,
        {.classes = "mark " + chart.beside.classes, .tooltip = tooltip(chart.beside, bar.beside)});
  }
  double label = x(begin);
  if (bar.reference.has_value()) {
    const double marker = x(*bar.reference);
    DrawReference(svg, bar, chart.unit, marker, y);
    if (marker > label - 10 && marker < label + 70) label = marker + 8;
  }
  svg.Text({label + 6, y + 15}, Concat(Readable(begin), chart.unit), Anchor::kStart, "bar-total");
}

}  // namespace

std::string RenderLines(const Chart& chart) {
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
  Plot plot(XTicks(chart.x_name, x), NiceTicks(y.lo, y.hi, kNumTicks));
  plot.MakeRoomForLabels();
  // An axis that would stay empty after the last value ends there.
  if (x.hi > x.lo && plot.x_hi - x.hi > 0.06 * (plot.x_hi - plot.x_lo)) plot.x_hi = x.hi;
  Canvas canvas(chart, plot);
  // What the page's script needs to turn the pointer's position into a reading.
  canvas.svg().SetData(
      "plot", Concat(plot.left, ",", plot.right, ",", plot.top, ",", plot.bottom, ",", plot.x_lo,
                     ",", plot.x_hi, ",", plot.y_ticks.lo(), ",", plot.y_ticks.hi()));
  canvas.svg().SetData("x", chart.x_name);
  for (const LimitLine& limit : chart.limits) {
    canvas.Horizontal(limit.y, {.classes = "limit", .tooltip = limit.name});
  }
  for (const RunLine& line : chart.lines) DrawGround(canvas, line);
  Figure figure = chart.figure;
  for (const RunLine& line : chart.lines) {
    if (line.points.empty()) continue;
    DrawLine(canvas, line);
    figure.key.push_back(KeyOf(line));
  }
  for (const LimitLine& limit : chart.limits) {
    figure.key.push_back(
        {.label = limit.name, .classes = "limit", .shape = KeyShape::kLine, .dashes = "1 3"});
  }
  return std::move(canvas).Finish(figure);
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

std::string RenderAreas(const Chart& chart) {
  if (chart.layers.empty() || chart.layers.front().points.empty()) return "";
  std::vector<Point> lower = chart.layers.front().points;
  Range x;
  for (Point& point : lower) {
    x.Add(point.x);
    point.y = 0;
  }
  const double top = StackTop(chart.layers);
  Canvas canvas(chart,
                {XTicks(chart.x_name, x), NiceTicks(0, chart.y_top.value_or(top), kNumTicks)});
  Figure figure = chart.figure;
  for (const StackLayer& layer : chart.layers) {
    std::vector<Point> upper = lower;
    for (size_t i = 0; i < upper.size(); ++i) upper[i].y += layer.points.at(i).y;
    const std::string label = Concat(layer.name, " ", Readable(layer.mean));
    canvas.Band(lower, upper, {.classes = "mark layer " + layer.classes, .tooltip = label});
    figure.key.push_back({.label = label, .classes = layer.classes});
    lower = std::move(upper);
  }
  if (top == 0) figure.note = "No staleness: all of it was on-policy.";
  return std::move(canvas).Finish(figure);
}

std::string RenderBars(const Chart& chart) {
  if (chart.bars.empty()) return "";
  double longest = 0;
  bool any_beside = false, any_reference = false;
  for (const Bar& bar : chart.bars) {
    longest = std::max({longest, Total(bar), bar.beside, bar.reference.value_or(0)});
    any_beside |= bar.beside > 0;
    any_reference |= bar.reference.has_value();
  }
  const Ticks ticks = NiceTicks(0, longest, kNumTicks);
  const Scale x(0, ticks.hi(), kLeft, kRight);
  const double bottom = kTop + kRow * static_cast<double>(chart.bars.size());
  Svg svg(kBarsWidth, bottom + 38, {chart.figure.caption, chart.description});
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
    figure.key.push_back({.label = part.name, .classes = "part " + part.classes});
  }
  if (any_beside) {
    figure.key.push_back({.label = chart.beside.name, .classes = chart.beside.classes});
  }
  if (any_reference) {
    figure.key.push_back({.label = "reference, measured elsewhere",
                          .classes = "reference",
                          .shape = KeyShape::kDiamond});
  }
  return RenderFigure(figure, std::move(svg).Finish());
}

std::string RenderVerdicts(Chart chart, size_t run, const Sample& retained,
                           const Sample& rejected) {
  if (retained.empty() && rejected.empty()) return "";
  const Bins bins = SharedBins(retained, rejected);
  const std::vector<int64_t> kept = CountInto(bins, retained), cut = CountInto(bins, rejected);
  int64_t top = 0;
  for (size_t i = 0; i < bins.count; ++i) top = std::max(top, kept[i] + cut[i]);
  chart.y_name = "groups";
  Canvas canvas(chart, BinPlot(bins, static_cast<double>(top)));
  for (size_t i = 0; i < bins.count; ++i) {
    const auto bar = [&](int64_t below, int64_t count, const std::string& classes,
                         const char* verdict) {
      if (count == 0) return;
      canvas.Bar({EdgeOf(bins, i), static_cast<double>(below)},
                 {EdgeOf(bins, i + 1), static_cast<double>(below + count)},
                 {.classes = classes, .tooltip = Concat(BinName(bins, i), ": ", count, verdict)});
    };
    bar(0, kept[i], "mark " + RunFill(run), " retained");
    bar(kept[i], cut[i], "mark rejected", " rejected");
  }
  return std::move(canvas).Finish(chart.figure);
}

std::string RenderAgainst(Chart chart, const NamedSample& light, const NamedSample& dark) {
  if (light.values.empty() || dark.values.empty()) return "";
  const Bins bins = SharedBins(light.values, dark.values);
  const std::vector<double> below = Shares(bins, light.values), above = Shares(bins, dark.values);
  const double top = std::max(std::ranges::max(below), std::ranges::max(above));
  chart.y_name = "% of trained groups";
  Canvas canvas(chart, BinPlot(bins, top * 100));
  std::vector<Point> outline = {{bins.lo, 0}};
  for (size_t i = 0; i < bins.count; ++i) {
    const double left = EdgeOf(bins, i), right = EdgeOf(bins, i + 1);
    if (below[i] > 0) {
      canvas.Bar({left, 0}, {right, below[i] * 100},
                 {.classes = "mark pale " + RunFill(light.run),
                  .tooltip = Concat(BinName(bins, i), ": ", light.name, " ", Percent(below[i]),
                                    ", ", dark.name, " ", Percent(above[i])),
                  .run = light.run});
    }
    outline.push_back({left, above[i] * 100});
    outline.push_back({right, above[i] * 100});
  }
  outline.push_back({bins.hi(), 0});
  canvas.Line(
      outline,
      {.classes = "mark outline " + RunStroke(dark.run), .tooltip = dark.name, .run = dark.run});
  DrawMean(canvas, light, "2 2");
  DrawMean(canvas, dark, "");
  return std::move(canvas).Finish(chart.figure);
}

std::string RenderSelection(Chart chart, size_t run, const Sample& offered, const Sample& trained) {
  const std::optional<KsDistance> distance = KolmogorovSmirnov(offered, trained);
  if (!distance.has_value()) return "";
  const Bins bins = SharedBins(offered, trained);
  chart.y_name = "% of groups at or below";
  Canvas canvas(chart, BinPlot(bins, 100));
  // A cumulative distribution is a staircase.
  const auto staircase = [&](const Sample& sample) {
    std::vector<Point> steps = {{bins.lo, 0}};
    for (const Point& point : CumulativeCurve(sample, kMostCurvePoints)) {
      steps.push_back({point.x, steps.back().y});
      steps.push_back({point.x, point.y * 100});
    }
    steps.push_back({bins.hi(), 100});
    return steps;
  };
  if (distance->distance > 0) canvas.Vertical(distance->at, {.classes = "gap"});
  canvas.Line(staircase(offered),
              {.classes = "mark line offered", .tooltip = "offered", .dashes = "4 3"});
  canvas.Line(staircase(trained),
              {.classes = "mark line " + RunStroke(run), .tooltip = "trained", .run = run});
  return std::move(canvas).Finish(chart.figure);
}

std::string RenderScatter(const Chart& chart, const std::vector<ScatterPoint>& points) {
  Range x, y;
  y.Add(0);
  for (const ScatterPoint& point : points) {
    x.Add(point.at.x);
    y.Add(point.at.y);
  }
  Plot plot(NiceTicks(x.lo, x.hi, kNumTicks), NiceTicks(0, y.hi, kNumTicks));
  plot.MakeRoomForLabels();
  Canvas canvas(chart, plot);
  for (const ScatterPoint& point : points) {
    const auto [at_x, at_y] = canvas.Placed(point.at);
    const Point corners[] = {{at_x, at_y - point.size},
                             {at_x + point.size, at_y},
                             {at_x, at_y + point.size},
                             {at_x - point.size, at_y}};
    canvas.svg().Polygon(corners, {.classes = point.classes, .tooltip = point.tooltip});
  }
  return std::move(canvas).Finish(chart.figure);
}

}  // namespace pace
