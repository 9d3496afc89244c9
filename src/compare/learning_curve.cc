#include "compare/learning_curve.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace pace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A running total as it stood at an evaluation.
double TotalAt(const Cell& cell, std::string_view column, const CellEvaluation& evaluation) {
  const auto totals = cell.steps.find(column);
  if (evaluation.step == 0 || totals == cell.steps.end() || totals->second.empty()) return 0;
  const size_t steps = std::min(totals->second.size(), static_cast<size_t>(evaluation.step));
  return totals->second[steps - 1];
}

}  // namespace

LearningCurve LearningCurve::OverUpdates(const Cell& cell, double updates_per_step) {
  LearningCurve curve;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    curve.points_.push_back(
        {static_cast<double>(evaluation.step) * updates_per_step, evaluation.accuracy});
  }
  return curve;
}

LearningCurve LearningCurve::OverTime(const Cell& cell) {
  LearningCurve curve;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    curve.points_.push_back({evaluation.time, evaluation.accuracy});
  }
  return curve;
}

LearningCurve LearningCurve::OverTotal(const Cell& cell, std::string_view column) {
  LearningCurve curve;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    curve.points_.push_back({TotalAt(cell, column, evaluation), evaluation.accuracy});
  }
  return curve;
}

double LearningCurve::Between(const Point& from, const Point& to, double at) {
  return from.accuracy + (at - from.at) / (to.at - from.at) * (to.accuracy - from.accuracy);
}

double LearningCurve::BestUpTo(double end) const {
  double best = kNan;
  for (size_t i = 0; i < points_.size(); ++i) {
    const bool after = points_[i].at > end;
    if (after && i == 0) return kNan;
    const double accuracy = after ? Between(points_[i - 1], points_[i], end) : points_[i].accuracy;
    best = i == 0 ? accuracy : std::max(best, accuracy);
    if (after) return best;
  }
  return best;
}

double LearningCurve::MeanUpTo(double end) const {
  if (points_.empty() || end <= points_.front().at) return kNan;
  double area = 0;
  for (size_t i = 1; i < points_.size() && points_[i - 1].at < end; ++i) {
    const Point& from = points_[i - 1];
    const bool after = points_[i].at > end;
    const Point to = after ? Point{end, Between(from, points_[i], end)} : points_[i];
    area += 0.5 * (from.accuracy + to.accuracy) * (to.at - from.at);
  }
  area += points_.back().accuracy * std::max(0.0, end - points_.back().at);
  return area / (end - points_.front().at);
}

Arrival LearningCurve::ArrivalAt(double accuracy) const {
  PACE_CHECK(!points_.empty(), "a curve without evaluations arrives nowhere");
  for (size_t i = 0; i < points_.size(); ++i) {
    if (points_[i].accuracy < accuracy) continue;
    if (i == 0) return {.at = points_[0].at};
    const Point& before = points_[i - 1];
    const double part = (accuracy - before.accuracy) / (points_[i].accuracy - before.accuracy);
    return {.at = before.at + part * (points_[i].at - before.at)};
  }
  return {.at = points_.back().at, .censored = true};
}

}  // namespace pace
