// Distributions: bins, distances and cumulative curves of plain numbers.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_DISTRIBUTION_H_
#define PACE_REPORT_DISTRIBUTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "report/svg.h"

namespace pace {

using Sample = std::vector<float>;

// Equal bins [lo + i * width, lo + (i + 1) * width); the last one also takes
// everything larger, the first everything smaller.
struct Bins {
  double lo = 0;
  double width = 1;
  size_t count = 1;
  bool open_above = false;  // whether values beyond the last bin were seen

  double hi() const { return lo + width * static_cast<double>(count); }
  size_t IndexOf(double value) const;
};

// Round bins, at most `most`, that cover all but the largest half percent of
// the samples taken together. Samples may be empty.
Bins ChooseBins(std::span<const Sample* const> samples, size_t most);

std::vector<int64_t> CountInto(const Bins& bins, const Sample& sample);

std::optional<double> SampleMean(const Sample& sample);

// The Kolmogorov-Smirnov statistic: the largest distance between the two
// cumulative distributions, and where it lies. None when a sample is empty.
struct KsDistance {
  double distance = 0;
  double at = 0;
};
std::optional<KsDistance> KolmogorovSmirnov(const Sample& a, const Sample& b);

// The cumulative distribution at up to `most` of its steps, as (value, share
// of the sample <= value). REQUIRES: sample is not empty.
std::vector<Point> CumulativeCurve(const Sample& sample, size_t most);

}  // namespace pace

#endif  // PACE_REPORT_DISTRIBUTION_H_
