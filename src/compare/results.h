// What a comparison found, as text and as a page.
//
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_RESULTS_H_
#define PACE_COMPARE_RESULTS_H_

#include <string>
#include <vector>

#include "compare/cell_summary.h"
#include "record/run_reader.h"

namespace pace {

// Tables in Markdown: every arm with intervals, differences to the baseline
// paired by seed, and the claims with what was found.
std::string ResultsMarkdown(const CellTable& table);

// One run per arm for a report: means over seeds; the intervals of its accuracy
// are those over seeds.
Result<std::vector<RunData>> MeanRuns(const CellTable& table);

// Offered, trained and rejected groups of every arm: mean, and the 10, 50 and 90 %
// quantiles, of waiting and generation staleness, score, length and reward.
std::string DistributionTable(const CellTable& table);

// Mean reward and length of offered groups by their lag, in steps of one; with
// the correlations of lag with both, over groups, and their intervals over seeds.
std::string LagTable(const CellTable& table);

}  // namespace pace

#endif  // PACE_COMPARE_RESULTS_H_
