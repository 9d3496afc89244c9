// Horizontal bars, one per run, stacked from parts that do not overlap.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_STACKED_BARS_H_
#define PACE_REPORT_STACKED_BARS_H_

#include <optional>
#include <string>
#include <vector>

#include "report/figure.h"

namespace pace {

struct BarPart {
  std::string name;
  std::string classes;
};

struct Bar {
  std::string name;
  std::vector<double> parts;        // as many as StackedBars::parts
  double beside = 0;                // time that ran beside the parts, drawn hatched
  std::optional<double> reference;  // measured elsewhere, drawn as a marker
};

struct StackedBars {
  Figure figure;
  std::string description;
  std::string x_name;  // with its unit
  std::string unit;    // behind numbers
  std::vector<BarPart> parts;
  BarPart beside;
  std::vector<Bar> bars;
};

// Empty without bars.
std::string RenderStackedBars(const StackedBars& chart);

}  // namespace pace

#endif  // PACE_REPORT_STACKED_BARS_H_
