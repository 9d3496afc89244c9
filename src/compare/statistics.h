// What several seeds say: means with intervals, paired comparisons.
//
//   Estimate best = EstimateOf(std::vector{0.41, 0.44, 0.40});   // 0.417 +- 0.052
//
// Intervals are 95 % ones of Student's t over the seeds, two-sided; those of a ratio of means are
// Fieller's.
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_STATISTICS_H_
#define PACE_COMPARE_STATISTICS_H_

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

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
// P(T <= t) of Student's t. REQUIRES: degrees >= 1
double StudentCdf(double t, size_t degrees);

// NaNs are left out. Without any value the count is 0 and the rest NaN.
Estimate EstimateOf(std::span<const double> values);
// a[i] - b[i] and a[i] / b[i], seed by seed. REQUIRES: the same size
Estimate PairedDifference(std::span<const double> a, std::span<const double> b);
Estimate PairedRatio(std::span<const double> a, std::span<const double> b);

// The two-sided p-value of "the true mean is `value`": below 0.05 where the interval excludes it.
// 1 with fewer than two values.
double PValue(const Estimate& estimate, double value);

// Holm's step-down adjustment of the p-values of several claims, in the order given. Claims with
// an adjusted value below 0.05 are all true with a probability of at least 0.95, however the
// claims depend on each other. REQUIRES: every p-value is in [0, 1]
std::vector<double> HolmAdjusted(std::span<const double> p_values);

// The ratio of two means, mean(x) / mean(y), with Fieller's 95 % interval.
struct RatioInterval {
  double ratio = 0;
  double low = 0;
  double high = 0;
  size_t count = 0;
  // Otherwise mean(y) does not differ from 0: every ratio, or all but an interval, agrees with
  // the data, and the other values are NaN.
  bool bounded = false;
};
// x[i] and y[i] belong to one seed and may be correlated: the interval holds each ratio r for
// which the mean of x[i] - r y[i] does not differ from 0. Pairs with a NaN are left out.
// REQUIRES: the same size
RatioInterval FiellerRatio(std::span<const double> x, std::span<const double> y);

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
