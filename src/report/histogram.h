// Histograms of groups: retained on rejected, and one run against another; and
// cumulative curves of what was offered and what was trained.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_HISTOGRAM_H_
#define PACE_REPORT_HISTOGRAM_H_

#include <string>

#include "report/distribution.h"
#include "report/figure.h"

namespace pace {

// One sample and how it is called.
struct NamedSample {
  size_t run = 0;
  std::string name;
  Sample values;
};

struct HistogramText {
  Figure figure;
  std::string description;
  std::string x_name;
};

// Bars of groups per bin, rejected ones stacked on retained ones. Empty when
// there are no groups at all.
std::string RenderVerdicts(const HistogramText& text, size_t run, const Sample& retained,
                           const Sample& rejected);

// Two runs over the same bins as shares of their groups: the first as light
// bars, the second as a dark outline. Empty when either has no groups.
std::string RenderAgainst(const HistogramText& text, const NamedSample& light,
                          const NamedSample& dark);

// Cumulative shares of offered (dashed) and trained (solid) groups, with the
// largest distance marked. Empty when either has no groups.
std::string RenderSelection(const HistogramText& text, size_t run, const Sample& offered,
                            const Sample& trained);

}  // namespace pace

#endif  // PACE_REPORT_HISTOGRAM_H_
