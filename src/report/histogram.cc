#include "report/histogram.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/concat.h"
#include "report/axes.h"

namespace pace {
namespace {

constexpr size_t kMostBins = 26;
constexpr int kNumXTicks = 5;
constexpr int kNumYTicks = 5;
constexpr size_t kMostCurvePoints = 120;

std::string BinName(const Bins& bins, size_t i) {
  const double lo = bins.lo + bins.width * static_cast<double>(i);
  const std::string from = TickLabel(lo, bins.width);
  if (bins.open_above && i + 1 == bins.count) return Concat("from ", from);
  return Concat(from, " to ", TickLabel(lo + bins.width, bins.width));
}

// A plot whose x axis ends where the bins do.
struct BinPlot {
  Plot plot;
  Bins bins;

  BinPlot(const Bins& bins_in, double y_top)
      : plot(NiceTicks(bins_in.lo, bins_in.hi(), kNumXTicks), NiceTicks(0, y_top, kNumYTicks)),
        bins(bins_in) {
    plot.x_lo = bins.lo;
    plot.x_hi = bins.hi();
  }

  double X(double value) const { return std::clamp(plot.XScale()(value), plot.left, plot.right); }
  double Left(size_t i) const { return X(bins.lo + bins.width * static_cast<double>(i)); }
};

// A line and a triangle on the axis at the mean.
void DrawMean(Svg& svg, const BinPlot& at, const NamedSample& sample, std::string_view dashes) {
  const std::optional<double> mean = MeanOf(sample.values);
  if (!mean.has_value()) return;
  const double x = at.X(*mean);
  const double y = at.plot.bottom;
  const std::string line = Concat("mark mean-line ", RunStroke(sample.run));
  svg.Line({x, at.plot.top}, {x, y}, {.classes = line, .run = sample.run, .dashes = dashes});
  const Point triangle[] = {{x, y - 10}, {x - 6, y}, {x + 6, y}};
  const std::string classes = Concat("mark mean ", RunFill(sample.run));
  svg.Polygon(triangle, {.classes = classes,
                         .tooltip = Concat("mean of ", sample.name, ": ", Readable(*mean)),
                         .run = sample.run});
}

std::vector<double> Shares(const Bins& bins, const Sample& sample) {
  std::vector<double> shares;
  for (const int64_t count : CountInto(bins, sample)) {
    shares.push_back(static_cast<double>(count) / static_cast<double>(sample.size()));
  }
  return shares;
}

}  // namespace

std::string RenderVerdicts(const HistogramText& text, size_t run, const Sample& retained,
                           const Sample& rejected) {
  if (retained.empty() && rejected.empty()) return "";
  const Sample* const samples[] = {&retained, &rejected};
  const Bins bins = ChooseBins(samples, kMostBins);
  const std::vector<int64_t> kept = CountInto(bins, retained), cut = CountInto(bins, rejected);
  int64_t top = 0;
  for (size_t i = 0; i < bins.count; ++i) top = std::max(top, kept[i] + cut[i]);
  const BinPlot at(bins, static_cast<double>(top));
  Svg svg(kChartWidth, kChartHeight, {text.figure.caption, text.description});
  DrawAxes(svg, at.plot, text.x_name, "groups");
  const Scale y = at.plot.YScale();
  const std::string kept_classes = Concat("mark ", RunFill(run));
  for (size_t i = 0; i < bins.count; ++i) {
    const double left = at.Left(i) + 0.6;
    const double width = at.Left(i + 1) - at.Left(i) - 1.2;
    const double kept_y = y(static_cast<double>(kept[i]));
    const double cut_y = y(static_cast<double>(kept[i] + cut[i]));
    const std::string where = BinName(bins, i);
    if (kept[i] > 0) {
      svg.Rect(left, kept_y, width, at.plot.bottom - kept_y,
               {.classes = kept_classes, .tooltip = Concat(where, ": ", kept[i], " retained")});
    }
    if (cut[i] > 0) {
      svg.Rect(left, cut_y, width, kept_y - cut_y,
               {.classes = "mark rejected", .tooltip = Concat(where, ": ", cut[i], " rejected")});
    }
  }
  return RenderFigure(text.figure, std::move(svg).Finish());
}

std::string RenderAgainst(const HistogramText& text, const NamedSample& light,
                          const NamedSample& dark) {
  if (light.values.empty() || dark.values.empty()) return "";
  const Sample* const samples[] = {&light.values, &dark.values};
  const Bins bins = ChooseBins(samples, kMostBins);
  const std::vector<double> below = Shares(bins, light.values), above = Shares(bins, dark.values);
  const double top = std::max(*std::max_element(below.begin(), below.end()),
                              *std::max_element(above.begin(), above.end()));
  const BinPlot at(bins, top * 100);
  Svg svg(kChartWidth, kChartHeight, {text.figure.caption, text.description});
  DrawAxes(svg, at.plot, text.x_name, "% of trained groups");
  const Scale y = at.plot.YScale();
  const std::string light_classes = Concat("mark pale ", RunFill(light.run));
  std::vector<Point> outline = {{at.Left(0), at.plot.bottom}};
  for (size_t i = 0; i < bins.count; ++i) {
    const double left = at.Left(i), right = at.Left(i + 1);
    const double height = y(below[i] * 100);
    if (below[i] > 0) {
      svg.Rect(left + 0.6, height, right - left - 1.2, at.plot.bottom - height,
               {.classes = light_classes,
                .tooltip = Concat(BinName(bins, i), ": ", light.name, " ", Percent(below[i]), ", ",
                                  dark.name, " ", Percent(above[i])),
                .run = light.run});
    }
    outline.push_back({left, y(above[i] * 100)});
    outline.push_back({right, y(above[i] * 100)});
  }
  outline.push_back({at.plot.right, at.plot.bottom});
  const std::string dark_classes = Concat("mark outline ", RunStroke(dark.run));
  svg.Polyline(outline, {.classes = dark_classes, .tooltip = dark.name, .run = dark.run});
  DrawMean(svg, at, light, "2 2");
  DrawMean(svg, at, dark, "");
  return RenderFigure(text.figure, std::move(svg).Finish());
}

std::string RenderSelection(const HistogramText& text, size_t run, const Sample& offered,
                            const Sample& trained) {
  const std::optional<KsDistance> distance = KolmogorovSmirnov(offered, trained);
  if (!distance.has_value()) return "";
  const Sample* const samples[] = {&offered, &trained};
  const Bins bins = ChooseBins(samples, kMostBins);
  const BinPlot at(bins, 100);
  Svg svg(kChartWidth, kChartHeight, {text.figure.caption, text.description});
  DrawAxes(svg, at.plot, text.x_name, "% of groups at or below");
  const Scale y = at.plot.YScale();
  // A cumulative distribution is a staircase.
  const auto staircase = [&](const Sample& sample) {
    std::vector<Point> steps = {{at.plot.left, at.plot.bottom}};
    for (const Point& point : CumulativeCurve(sample, kMostCurvePoints)) {
      const double x = at.X(point.x);
      steps.push_back({x, steps.back().y});
      steps.push_back({x, y(point.y * 100)});
    }
    steps.push_back({at.plot.right, y(100)});
    return steps;
  };
  const double gap_x = at.X(distance->at);
  if (distance->distance > 0) {
    svg.Line({gap_x, at.plot.top}, {gap_x, at.plot.bottom}, {.classes = "gap"});
  }
  svg.Polyline(staircase(offered),
               {.classes = "mark line offered", .tooltip = "offered", .dashes = "4 3"});
  const std::string classes = Concat("mark line ", RunStroke(run));
  svg.Polyline(staircase(trained), {.classes = classes, .tooltip = "trained", .run = run});
  return RenderFigure(text.figure, std::move(svg).Finish());
}

}  // namespace pace
