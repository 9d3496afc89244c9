#include "report/distribution.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "report/axes.h"

namespace pace {
namespace {

constexpr double kShownShare = 0.995;
// Values this many times the shown range or more do not stretch the picture.
constexpr double kTailFactor = 1.25;

Sample Sorted(const Sample& sample) {
  Sample sorted = sample;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

size_t Bins::IndexOf(double value) const {
  // Values on an edge belong to the bin above it, whatever rounding says.
  const double position = std::floor((value - lo) / width + 1e-6);
  return static_cast<size_t>(std::clamp(position, 0.0, static_cast<double>(count - 1)));
}

Bins ChooseBins(std::span<const Sample* const> samples, size_t most) {
  Sample all;
  for (const Sample* sample : samples) all.insert(all.end(), sample->begin(), sample->end());
  if (all.empty()) return {};
  const auto rank =
      static_cast<size_t>(std::ceil(kShownShare * static_cast<double>(all.size() - 1)));
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
  const double shown = all[rank];
  const auto [smallest, largest] = std::minmax_element(all.begin(), all.end());
  const double lo = std::min(0.0, static_cast<double>(*smallest));
  double hi = *largest;
  if (hi - lo > (shown - lo) * kTailFactor && shown > lo) hi = shown;
  // A value on the last tick needs a bin of its own, so one tick is kept free.
  const Ticks ticks = NiceTicks(lo, hi, static_cast<int>(most) - 2);
  Bins bins;
  bins.lo = ticks.lo();
  bins.width = ticks.step;
  bins.count = ticks.values.size() - 1;
  if (hi >= ticks.hi() - ticks.step * 1e-6 && bins.count < most) ++bins.count;
  bins.open_above = *largest >= bins.hi();
  return bins;
}

std::vector<int64_t> CountInto(const Bins& bins, const Sample& sample) {
  std::vector<int64_t> counts(bins.count);
  for (const float value : sample) ++counts[bins.IndexOf(value)];
  return counts;
}

std::optional<double> SampleMean(const Sample& sample) {
  if (sample.empty()) return std::nullopt;
  double sum = 0;
  for (const float value : sample) sum += value;
  return sum / static_cast<double>(sample.size());
}

std::optional<KsDistance> KolmogorovSmirnov(const Sample& a, const Sample& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const Sample left = Sorted(a), right = Sorted(b);
  KsDistance largest;
  size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    // Step over all equal values of both before comparing: ties are one place.
    const float value = std::min(left[i], right[j]);
    while (i < left.size() && left[i] <= value) ++i;
    while (j < right.size() && right[j] <= value) ++j;
    const double distance = std::abs(static_cast<double>(i) / static_cast<double>(left.size()) -
                                     static_cast<double>(j) / static_cast<double>(right.size()));
    if (distance > largest.distance) largest = {distance, value};
  }
  return largest;
}

std::vector<Point> CumulativeCurve(const Sample& sample, size_t most) {
  PACE_CHECK(!sample.empty(), "no curve without values");
  const Sample sorted = Sorted(sample);
  const auto size = static_cast<double>(sorted.size());
  std::vector<Point> curve = {{sorted.front(), 0}};
  const double stride = std::max(1.0, size / static_cast<double>(most));
  for (double next = stride; next < size + 0.5; next += stride) {
    auto end = std::min(sorted.size(), static_cast<size_t>(next));
    const float value = sorted[end - 1];
    if (curve.size() > 1 && curve.back().x == value) continue;
    end =
        static_cast<size_t>(std::upper_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
    curve.push_back({value, static_cast<double>(end) / size});
  }
  if (curve.back().y < 1) curve.push_back({sorted.back(), 1});
  return curve;
}

}  // namespace pace
