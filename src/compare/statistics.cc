#include "compare/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
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

// Means of pairs, and the variances and the covariance of these means.
struct Moments {
  size_t count = 0;
  double x = 0, y = 0;
  double xx = 0, yy = 0, xy = 0;
};

Moments MomentsOf(std::span<const double> x, std::span<const double> y) {
  Moments out;
  const auto is_pair = [&](size_t i) { return !std::isnan(x[i]) && !std::isnan(y[i]); };
  for (size_t i = 0; i < x.size(); ++i) {
    if (!is_pair(i)) continue;
    out.x += x[i];
    out.y += y[i];
    ++out.count;
  }
  const auto n = static_cast<double>(out.count);
  out.x /= n;
  out.y /= n;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!is_pair(i)) continue;
    out.xx += (x[i] - out.x) * (x[i] - out.x) / (n - 1) / n;
    out.yy += (y[i] - out.y) * (y[i] - out.y) / (n - 1) / n;
    out.xy += (x[i] - out.x) * (y[i] - out.y) / (n - 1) / n;
  }
  return out;
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

// Abramowitz and Stegun 26.7.3 and 26.7.4: P(|T| <= t) as a finite sum in the angle atan(t /
// sqrt(n)).
double StudentCdf(double t, size_t degrees) {
  PACE_CHECK(degrees >= 1, "no degree of freedom");
  const double angle = std::atan(std::abs(t) / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = degrees == 1 ? 0 : term;
  for (size_t k = odd ? 3 : 2; k + 2 <= degrees; k += 2) {
    term *= static_cast<double>(k - 1) / static_cast<double>(k) * cosine * cosine;
    sum += term;
  }
  const double within =
      odd ? 2 * std::numbers::inv_pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
  return 0.5 + std::copysign(0.5 * std::min(within, 1.0), t);
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

double PValue(const Estimate& estimate, double value) {
  if (estimate.count < 2) return 1;
  if (estimate.half_width == 0) return estimate.mean == value ? 1 : 0;
  const double error = estimate.half_width / StudentQuantile(estimate.count - 1);
  const double t = std::abs(estimate.mean - value) / error;
  return std::clamp(2 * StudentCdf(-t, estimate.count - 1), 0.0, 1.0);
}

std::vector<double> HolmAdjusted(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto remaining = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, remaining * p_values[order[rank]]));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

RatioInterval FiellerRatio(std::span<const double> x, std::span<const double> y) {
  PACE_CHECK(x.size() == y.size(), x.size(), " and ", y.size(), " values are no pairs");
  const Moments moments = MomentsOf(x, y);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  RatioInterval out{.ratio = kNan, .low = kNan, .high = kNan, .count = moments.count};
  if (moments.count < 2) return out;
  // |mean(x) - r mean(y)| <= t sqrt(var(mean(x) - r mean(y))), squared: a r^2 - 2 b r + c <= 0.
  const double t = StudentQuantile(moments.count - 1);
  const double a = moments.y * moments.y - t * t * moments.yy;
  const double b = moments.x * moments.y - t * t * moments.xy;
  const double c = moments.x * moments.x - t * t * moments.xx;
  if (!(a > 0)) return out;
  const double root = std::sqrt(std::max(0.0, b * b - a * c));
  out.ratio = moments.x / moments.y;
  out.low = (b - root) / a;
  out.high = (b + root) / a;
  out.bounded = true;
  return out;
}

Finding Against(const Estimate& estimate, double bound) {
  if (estimate.count == 0) return Finding::kUndecided;
  if (estimate.low() > bound) return Finding::kAbove;
  if (estimate.high() < bound) return Finding::kBelow;
  return Finding::kUndecided;
}

}  // namespace pace
