// Series: a metric over steps, thinned to what a picture can show.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_SERIES_H_
#define PACE_REPORT_SERIES_H_

#include <optional>
#include <string_view>
#include <vector>

#include "record/metrics_table.h"
#include "report/svg.h"

namespace pace {

// (step, value), at most `most` of them: the steps are cut into equal parts
// and each is its mean. Absent values are left out.
std::vector<Point> MetricOverSteps(const MetricsTable& metrics, std::string_view name, size_t most);
// (time, value) in the same way, seconds of the driver's clock. Rows without
// `time` are left out.
std::vector<Point> MetricOverTime(const MetricsTable& metrics, std::string_view name, size_t most);

// Each value is the mean of itself and its neighbours, `window` points in all;
// at the ends those that are there. REQUIRES: window is odd.
std::vector<Point> Smoothed(const std::vector<Point>& points, size_t window);

// The first row of the settled part of a run, its second half: means and
// distributions leave the filling of the pool out, as `pace sim` does.
size_t FirstSettledRow(const MetricsTable& metrics);
// The mean over that part.
std::optional<double> SettledMean(const MetricsTable& metrics, std::string_view name);

// How many steps one point of MetricOverSteps stands for.
size_t StepsPerPoint(const MetricsTable& metrics, size_t most);

}  // namespace pace

#endif  // PACE_REPORT_SERIES_H_
