#include "control/score_window.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/check.h"

namespace pace {

ScoreWindow::ScoreWindow(int64_t capacity) : capacity_(static_cast<size_t>(capacity)) {
  PACE_CHECK(capacity >= 1, "capacity = ", capacity);
}

void ScoreWindow::Add(std::span<const double> values) {
  if (values.empty()) return;
  // Only the last `capacity_` can stay.
  if (values.size() > capacity_) values = values.last(capacity_);
  removed_.clear();
  while (arrival_.size() + values.size() > capacity_) {
    removed_.push_back(arrival_.front());
    arrival_.pop_front();
  }
  arrival_.insert(arrival_.end(), values.begin(), values.end());
  std::sort(removed_.begin(), removed_.end());
  added_.assign(values.begin(), values.end());
  std::sort(added_.begin(), added_.end());
  if (!removed_.empty()) {
    merged_.clear();
    std::set_difference(sorted_.begin(), sorted_.end(), removed_.begin(), removed_.end(),
                        std::back_inserter(merged_));
    sorted_.swap(merged_);
  }
  merged_.clear();
  std::merge(sorted_.begin(), sorted_.end(), added_.begin(), added_.end(),
             std::back_inserter(merged_));
  sorted_.swap(merged_);
  PACE_CHECK(sorted_.size() == arrival_.size(), "a window lost an observation");
}

double ScoreWindow::Percentile(double value) const {
  PACE_CHECK(!sorted_.empty(), "an empty window has no percentiles");
  const auto above = std::upper_bound(sorted_.begin(), sorted_.end(), value);
  return static_cast<double>(above - sorted_.begin()) / static_cast<double>(sorted_.size());
}

double ScoreWindow::MidPercentile(double value) const {
  return Percentile(value) -
         0.5 * static_cast<double>(NumEqual(value)) / static_cast<double>(sorted_.size());
}

double ScoreWindow::Quantile(double p) const {
  PACE_CHECK(!sorted_.empty(), "an empty window has no quantiles");
  PACE_CHECK(p >= 0 && p <= 1, "p = ", p);
  const double h = static_cast<double>(sorted_.size() - 1) * p;
  const auto lo = static_cast<size_t>(std::floor(h));
  if (lo + 1 >= sorted_.size()) return sorted_.back();
  return sorted_[lo] + (sorted_[lo + 1] - sorted_[lo]) * (h - static_cast<double>(lo));
}

int64_t ScoreWindow::NumAbove(double value) const {
  return sorted_.end() - std::upper_bound(sorted_.begin(), sorted_.end(), value);
}

int64_t ScoreWindow::NumEqual(double value) const {
  const auto [first, last] = std::equal_range(sorted_.begin(), sorted_.end(), value);
  return last - first;
}

void ScoreWindow::Assign(std::span<const double> values) {
  arrival_.clear();
  sorted_.clear();
  Add(values);
}

}  // namespace pace
