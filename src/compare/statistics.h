// What several seeds say: means with intervals, paired comparisons.
//
//   Estimate best = EstimateOf(std::vector{0.41, 0.44, 0.40});   // 0.417 +- 0.052
//
// Intervals are 95 % ones of Student's t over the seeds, two-sided.
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_STATISTICS_H_
#define PACE_COMPARE_STATISTICS_H_

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace pace {

struct Estimate {
  double mean = 0;
  double half_width = 0;  // infinite with a single value
  size_t count = 0;

  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
};

// The 0.975 quantile of Student's t. REQUIRES: degrees >= 1
double StudentQuantile(size_t degrees);

// NaNs are left out. Without any value the count is 0 and the rest NaN.
Estimate EstimateOf(std::span<const double> values);
// a[i] - b[i] and a[i] / b[i], seed by seed. REQUIRES: the same size
Estimate PairedDifference(std::span<const double> a, std::span<const double> b);
Estimate PairedRatio(std::span<const double> a, std::span<const double> b);

// Where a value lies in view of a bound.
enum class Finding { kAbove, kBelow, kUndecided };
Finding Against(const Estimate& estimate, double bound);

// Numbers as tables show them: a dash where there is none.
inline std::string Fixed(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

// "48.1 ± 0.7", each times `factor`.
inline std::string Show(const Estimate& estimate, double factor, int digits) {
  if (estimate.count == 0) return "–";
  std::string out = Fixed(factor * estimate.mean, digits);
  if (std::isfinite(estimate.half_width)) {
    out += " ± " + Fixed(factor * estimate.half_width, digits);
  }
  return out;
}

}  // namespace pace

#endif  // PACE_COMPARE_STATISTICS_H_
