// What the drawn groups of an experiment look like, as Markdown: whom admission
// kept, and how staleness goes with reward and length. Groups of the second half
// of the steps, all seeds together.
//
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_GROUP_TABLES_H_
#define PACE_COMPARE_GROUP_TABLES_H_

#include <string>

#include "compare/cell_summary.h"

namespace pace {

// Offered, trained and rejected groups of every arm: mean, and the 10, 50 and 90 %
// quantiles, of waiting and generation staleness, score, length and reward.
std::string DistributionTable(const CellTable& table);

// Mean reward and length of offered groups by their lag, in steps of one; with
// the correlations of lag with both, over groups, and their intervals over seeds.
std::string LagTable(const CellTable& table);

}  // namespace pace

#endif  // PACE_COMPARE_GROUP_TABLES_H_
