// The words of `pace advise`: the layout, and the lines under the table of candidates.
//
// Thread-safety: pure functions.
#ifndef PACE_ADVISE_ADVICE_TEXT_H_
#define PACE_ADVISE_ADVICE_TEXT_H_

#include <string>
#include <vector>

#include "advise/advice.h"
#include "config/settings.h"

namespace pace {

// Machines, batch and workload, one line each.
std::vector<std::string> DescribeLayout(const Settings& settings);

// What to use, why, what it gains and costs, and how sure that is.
std::vector<std::string> DescribeAdvice(const std::vector<CandidateRuns>& runs,
                                        const Advice& advice, double slowdown);

}  // namespace pace

#endif  // PACE_ADVISE_ADVICE_TEXT_H_
