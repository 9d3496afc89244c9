// Lines over steps or time, one per run; and areas stacked on each other over steps.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_LINE_CHART_H_
#define PACE_REPORT_LINE_CHART_H_

#include <optional>
#include <string>
#include <vector>

#include "report/figure.h"
#include "report/svg.h"

namespace pace {

struct RunLine {
  size_t run = 0;
  std::string name;
  std::vector<Point> points;      // x grows; may be empty
  std::vector<Point> faint = {};  // drawn thin behind it: what it is a mean of
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

struct LineChart {
  Figure figure;  // its key is filled in here
  std::string description;
  std::string x_name = "step";
  std::string y_name;
  // Whether the y axis always shows 0; otherwise only where values come near it.
  bool from_zero = true;
  std::vector<LimitLine> limits = {};
  std::vector<RunLine> lines;
};

// Empty when no line has a point.
std::string RenderLineChart(const LineChart& chart);

struct StackLayer {
  std::string name;
  std::string classes;
  std::vector<Point> points;  // all layers over the same x
  double mean = 0;            // shown in the key
};

struct StackedAreas {
  Figure figure;
  std::string description;
  std::string x_name = "step";
  std::string y_name;
  std::vector<StackLayer> layers;  // from the bottom up
  std::optional<double> y_top;     // shared by charts that stand side by side
};

// Empty when the layers have no points.
std::string RenderStackedAreas(const StackedAreas& chart);

// The largest height of the stack.
double StackTop(const std::vector<StackLayer>& layers);

}  // namespace pace

#endif  // PACE_REPORT_LINE_CHART_H_
