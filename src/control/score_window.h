// ScoreWindow: the last n observations, with order statistics.
//
// Observations are added in bulk when a step begins and then read many times. They are stored
// twice: in arrival order, to drop the oldest, and sorted. Adding m values to a window of n
// costs O(n + m log m), a percentile O(log n), a quantile O(1).
//
// Thread-safety: none.
#ifndef PACE_CONTROL_SCORE_WINDOW_H_
#define PACE_CONTROL_SCORE_WINDOW_H_

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace pace {

class ScoreWindow {
 public:
  // REQUIRES: capacity >= 1.
  explicit ScoreWindow(int64_t capacity);

  // Adds in order; the oldest leave once the window is full.
  void Add(std::span<const double> values);

  int64_t size() const { return static_cast<int64_t>(sorted_.size()); }

  // The share of observations <= value. REQUIRES: size() > 0.
  double Percentile(double value) const;

  // The same with half of those that equal it: 1/2 where all do.
  double MidPercentile(double value) const;

  // The p quantile by linear interpolation: h = (n - 1) p, between order
  // statistics floor(h) and floor(h) + 1. REQUIRES: size() > 0, 0 <= p <= 1.
  double Quantile(double p) const;

  int64_t NumAbove(double value) const;
  int64_t NumEqual(double value) const;

  // Oldest first.
  std::vector<double> Values() const { return {arrival_.begin(), arrival_.end()}; }
  void Assign(std::span<const double> values);

 private:
  const size_t capacity_;
  std::deque<double> arrival_;
  std::vector<double> sorted_;
  // Reused by Add.
  std::vector<double> added_, removed_, merged_;
};

}  // namespace pace

#endif  // PACE_CONTROL_SCORE_WINDOW_H_
