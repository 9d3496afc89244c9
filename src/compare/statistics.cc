#include "compare/statistics.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"

namespace pace {
namespace {

template <typename Operation>
Estimate Paired(std::span<const double> a, std::span<const double> b, Operation operation) {
  PACE_CHECK(a.size() == b.size(), a.size(), " and ", b.size(), " values are no pairs");
  std::vector<double> values;
  values.reserve(a.size());
  for (size_t i = 0; i < a.size(); ++i) values.push_back(operation(a[i], b[i]));
  return EstimateOf(values);
}

}  // namespace

double StudentQuantile(size_t degrees) {
  static constexpr std::array<double, 30> kTable = {
      12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
      2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
      2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
  PACE_CHECK(degrees >= 1, "no degree of freedom");
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  // The first term of the expansion around the normal quantile; right to 1e-3.
  constexpr double kNormal = 1.959964;
  return kNormal + (std::pow(kNormal, 3) + kNormal) / (4 * static_cast<double>(degrees));
}

Estimate EstimateOf(std::span<const double> values) {
  Estimate out;
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++out.count;
  }
  if (out.count == 0) {
    out.mean = out.half_width = std::numeric_limits<double>::quiet_NaN();
    return out;
  }
  const auto n = static_cast<double>(out.count);
  out.mean = sum / n;
  if (out.count == 1) {
    out.half_width = std::numeric_limits<double>::infinity();
    return out;
  }
  double squares = 0;
  for (const double value : values) {
    if (!std::isnan(value)) squares += (value - out.mean) * (value - out.mean);
  }
  out.half_width = StudentQuantile(out.count - 1) * std::sqrt(squares / (n - 1) / n);
  return out;
}

Estimate PairedDifference(std::span<const double> a, std::span<const double> b) {
  return Paired(a, b, [](double x, double y) { return x - y; });
}

Estimate PairedRatio(std::span<const double> a, std::span<const double> b) {
  return Paired(a, b, [](double x, double y) {
    return y == 0 ? std::numeric_limits<double>::quiet_NaN() : x / y;
  });
}

Finding Against(const Estimate& estimate, double bound) {
  if (estimate.count == 0) return Finding::kUndecided;
  if (estimate.low() > bound) return Finding::kAbove;
  if (estimate.high() < bound) return Finding::kBelow;
  return Finding::kUndecided;
}

}  // namespace pace
