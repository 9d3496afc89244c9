#include "report/series.h"

#include <algorithm>

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

std::vector<Point> MetricOverSteps(const MetricsTable& metrics, std::string_view name,
                                   size_t most) {
  const std::vector<std::optional<double>> column = metrics.Column(name);
  const size_t stride = StepsPerPoint(metrics, most);
  std::vector<Point> points;
  for (size_t begin = 0; begin < column.size(); begin += stride) {
    const size_t end = std::min(column.size(), begin + stride);
    Point sum;
    double count = 0;
    for (size_t row = begin; row < end; ++row) {
      if (!column[row].has_value()) continue;
      sum.x += static_cast<double>(metrics.steps()[row]);
      sum.y += *column[row];
      ++count;
    }
    if (count > 0) points.push_back({sum.x / count, sum.y / count});
  }
  return points;
}

}  // namespace pace
