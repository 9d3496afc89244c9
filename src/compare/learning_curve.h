// LearningCurve: the accuracy of a run over something that grows, such as its
// updates or its time. Evaluations are joined by straight lines.
//
//   const LearningCurve curve = LearningCurve::OverTime(cell);
//   const Arrival arrival = curve.ArrivalAt(0.45);
//   if (arrival.censored) { /* the run ended at arrival.at, below 0.45 */ }
//
// Thread-safety: immutable values.
#ifndef PACE_COMPARE_LEARNING_CURVE_H_
#define PACE_COMPARE_LEARNING_CURVE_H_

#include <string_view>
#include <vector>

#include "compare/cell.h"

namespace pace {

// Where a curve first reaches an accuracy. A run that ends before is censored: it would
// have arrived after `at`, the end of its curve, if at all.
struct Arrival {
  double at = 0;
  bool censored = false;
};

class LearningCurve {
 public:
  // Over optimizer updates, of which a step makes `updates_per_step`.
  static LearningCurve OverUpdates(const Cell& cell, double updates_per_step);
  // Over the run's clock.
  static LearningCurve OverTime(const Cell& cell);
  // Over a running total, such as "cost/gpu_time".
  static LearningCurve OverTotal(const Cell& cell, std::string_view column);

  bool empty() const { return points_.empty(); }
  // Of the last evaluation. REQUIRES: !empty()
  double end() const { return points_.back().at; }

  // NaN if the curve begins after `end`, or is empty.
  double BestUpTo(double end) const;
  // The mean from the first evaluation to `end`; after its last evaluation the curve stays
  // where it was. NaN without an evaluation before `end`.
  double MeanUpTo(double end) const;
  // REQUIRES: !empty()
  Arrival ArrivalAt(double accuracy) const;

 private:
  struct Point {
    double at = 0;
    double accuracy = 0;
  };
  // On the line between two points. REQUIRES: from.at < to.at
  static double Between(const Point& from, const Point& to, double at);

  std::vector<Point> points_;
};

}  // namespace pace

#endif  // PACE_COMPARE_LEARNING_CURVE_H_
