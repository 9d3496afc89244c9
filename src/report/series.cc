#include "report/series.h"

#include <algorithm>

#include "core/check.h"

namespace pace {

size_t FirstSettledRow(const MetricsTable& metrics) {
  return metrics.num_rows() / 2;
}

std::optional<double> SettledMean(const MetricsTable& metrics, std::string_view name) {
  return metrics.Mean(name, FirstSettledRow(metrics));
}

size_t StepsPerPoint(const MetricsTable& metrics, size_t most) {
  return std::max<size_t>(1, (metrics.num_rows() + most - 1) / most);
}

namespace {

std::vector<Point> Thinned(const std::vector<std::optional<double>>& x,
                           const std::vector<std::optional<double>>& y, size_t stride) {
  std::vector<Point> points;
  for (size_t begin = 0; begin < y.size(); begin += stride) {
    const size_t end = std::min(y.size(), begin + stride);
    Point sum;
    double count = 0;
    for (size_t row = begin; row < end; ++row) {
      if (!x[row].has_value() || !y[row].has_value()) continue;
      sum.x += *x[row];
      sum.y += *y[row];
      ++count;
    }
    if (count > 0) points.push_back({sum.x / count, sum.y / count});
  }
  return points;
}

}  // namespace

std::vector<Point> MetricOverSteps(const MetricsTable& metrics, std::string_view name,
                                   size_t most) {
  const std::vector<std::optional<double>> steps(metrics.steps().begin(), metrics.steps().end());
  return Thinned(steps, metrics.Column(name), StepsPerPoint(metrics, most));
}

std::vector<Point> MetricOverTime(const MetricsTable& metrics, std::string_view name, size_t most) {
  return Thinned(metrics.Column("time"), metrics.Column(name), StepsPerPoint(metrics, most));
}

std::vector<Point> Smoothed(const std::vector<Point>& points, size_t window) {
  PACE_CHECK(window % 2 == 1, window);
  std::vector<Point> out = points;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t begin = i - std::min(i, window / 2);
    const size_t end = std::min(points.size(), i + window / 2 + 1);
    double sum = 0;
    for (size_t j = begin; j < end; ++j) sum += points[j].y;
    out[i].y = sum / static_cast<double>(end - begin);
  }
  return out;
}

}  // namespace pace
