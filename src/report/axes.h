// Axes: round tick values, scales, and the frame around a plot.
//
// Thread-safety: values and pure functions.
#ifndef PACE_REPORT_AXES_H_
#define PACE_REPORT_AXES_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/svg.h"

namespace pace {

// Round values, at equal distances of 1, 2 or 5 times a power of ten, that
// cover [lo, hi]: the first is <= lo, the last >= hi.
struct Ticks {
  std::vector<double> values;
  double step = 1;

  double lo() const { return values.front(); }
  double hi() const { return values.back(); }
};

// About `target` of them, between 2 and 3 * target + 2. An empty or reversed
// range is widened; values beyond +-1e15 are taken as +-1e15.
Ticks NiceTicks(double lo, double hi, int target);
// The same for things that are counted: ticks at whole numbers.
Ticks WholeTicks(double lo, double hi, int target);

// With as many digits as the distance of the ticks needs: "0.25", "1,200", "3M",
// "2.5e-6".
std::string TickLabel(double value, double step);

// A number for people: about three digits, with k, M or G above ten thousand.
std::string Readable(double value);
// "41 %", "0.3 %".
std::string Percent(double share);

// Maps [from, to] onto [start, end], linearly.
class Scale {
 public:
  Scale(double from, double to, double start, double end)
      : from_(from), start_(start), factor_(to == from ? 0 : (end - start) / (to - from)) {}
  double operator()(double value) const { return start_ + (value - from_) * factor_; }

 private:
  double from_, start_, factor_;
};

// The size every chart is drawn at; the page scales it.
inline constexpr double kChartWidth = 340;
inline constexpr double kChartHeight = 218;

// The plot inside a chart, with its two scales. Its x axis may end beside a
// tick, its y axis ends on ticks.
struct Plot {
  Ticks x_ticks, y_ticks;
  double x_lo, x_hi;
  double left = 44, right = kChartWidth - 10, top = 24, bottom = kChartHeight - 38;

  Plot(Ticks x, Ticks y)
      : x_ticks(std::move(x)), y_ticks(std::move(y)), x_lo(x_ticks.lo()), x_hi(x_ticks.hi()) {}
  // Moves the left edge so that the labels of the y axis fit beside it.
  void MakeRoomForLabels();
  Scale XScale() const { return {x_lo, x_hi, left, right}; }
  Scale YScale() const { return {y_ticks.lo(), y_ticks.hi(), bottom, top}; }
};

// Grid, tick labels, and the two names: x below, y above the plot's corner.
void DrawAxes(Svg& svg, const Plot& plot, std::string_view x_name, std::string_view y_name);

}  // namespace pace

#endif  // PACE_REPORT_AXES_H_
