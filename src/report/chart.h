// Charts: one specification for lines, stacked areas, histograms, cumulative curves and
// bars, each rendered as one figure (figure.h).
//
//   Chart chart{.figure = {.name = "kl", .caption = "KL"}, .y_name = "nats"};
//   chart.lines.push_back({run, "async", points});
//   html += RenderLines(chart);
//
// A chart without data renders as "". Thread-safety: pure functions.
#ifndef PACE_REPORT_CHART_H_
#define PACE_REPORT_CHART_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/distribution.h"
#include "report/figure.h"
#include "report/svg.h"

namespace pace {

struct RunLine {
  size_t run = 0;
  std::string name;
  std::vector<Point> points;      // x grows; may be empty
  std::vector<Point> faint = {};  // drawn thin below it: what it is a mean of
  // The edges of a band around it, over the same x; both or none.
  std::vector<Point> lower = {}, upper = {};
  bool dots = false;  // marks every point: they are few and were measured there
  // Where a run has several lines: its own dashes, and an entry in the key that says
  // more than the run's name.
  std::optional<std::string_view> dashes = {};
};

// A bound that a chart's values are read against.
struct LimitLine {
  double y = 0;
  std::string name;
};

struct StackLayer {
  std::string name;
  std::string classes;
  std::vector<Point> points;  // all layers over the same x
  double mean = 0;            // shown in the key
};

struct BarPart {
  std::string name;
  std::string classes;
};

struct Bar {
  std::string name;
  std::vector<double> parts;             // as many as Chart::parts
  double beside = 0;                     // time that ran beside the parts, drawn hatched
  std::optional<double> reference = {};  // measured elsewhere, drawn as a marker
};

// What a chart says, and the data of those that are made of more than a sample or two.
struct Chart {
  Figure figure;  // lines, areas and bars fill in its key
  std::string description = {};
  std::string x_name = "step";
  std::string y_name = {};

  std::vector<RunLine> lines = {};
  std::vector<LimitLine> limits = {};
  // Whether the y axis always shows 0; otherwise only where values come near it.
  bool from_zero = true;

  std::vector<StackLayer> layers = {};  // from the bottom up
  std::optional<double> y_top = {};     // shared by charts that stand side by side

  std::vector<BarPart> parts = {};
  BarPart beside = {};
  std::string unit = {};  // after numbers
  std::vector<Bar> bars = {};
};

// One line per run, over steps or time.
std::string RenderLines(const Chart& chart);
// Areas stacked on each other.
std::string RenderAreas(const Chart& chart);
// The largest height of the stack.
double StackTop(const std::vector<StackLayer>& layers);
// Horizontal bars, one per run, stacked from parts that do not overlap.
std::string RenderBars(const Chart& chart);

// One sample and how it is called.
struct NamedSample {
  size_t run = 0;
  std::string name;
  Sample values;
};

// Bars of groups per bin, rejected ones stacked on retained ones.
std::string RenderVerdicts(Chart chart, size_t run, const Sample& retained, const Sample& rejected);
// Two runs over the same bins as shares of their groups: the first as light bars, the second
// as a dark outline.
std::string RenderAgainst(Chart chart, const NamedSample& light, const NamedSample& dark);
// Cumulative shares of offered (dashed) and trained (solid) groups, with the largest
// distance marked.
std::string RenderSelection(Chart chart, size_t run, const Sample& offered, const Sample& trained);

// A diamond for each point: what it is called, and how it looks.
struct ScatterPoint {
  Point at;
  double size = 0;  // half of its width
  std::string classes;
  std::string tooltip;
};
// REQUIRES: points is not empty
std::string RenderScatter(const Chart& chart, const std::vector<ScatterPoint>& points);

}  // namespace pace

#endif  // PACE_REPORT_CHART_H_
