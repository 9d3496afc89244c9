// What was found of an experiment's claims.
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_CLAIMS_H_
#define PACE_COMPARE_CLAIMS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "compare/cell_summary.h"
#include "compare/experiment.h"
#include "compare/statistics.h"

namespace pace {

enum class ClaimFinding {
  kReported,   // it names no bound
  kHolds,      // with its whole interval
  kFails,      // with its whole interval
  kUndecided,  // the interval straddles a bound, or not every seed has the value
};

// Beside the published number.
enum class PaperFinding {
  kNone,       // none was published
  kSame,       // a ratio on the same side of 1, with its whole interval
  kOpposite,   // on the other side, with its whole interval
  kUndecided,  // the interval holds 1, or not every seed has the value
};

struct ClaimResult {
  Estimate found = {};
  ClaimFinding finding = ClaimFinding::kReported;
  PaperFinding paper = PaperFinding::kNone;
};

ClaimResult Examine(const CellTable& table, const Claim& claim);

std::string_view Name(ClaimFinding finding);
std::string_view Name(PaperFinding finding);

// "at most 1.02"; a dash where there is no bound.
std::string BoundText(const Claim& claim);
// "step_seconds, pace / async"
std::string MeasureText(const Claim& claim);

// "1.010 ± 0.012", and how many seeds have it if not all.
std::string FoundText(const CellTable& table, const ClaimResult& result);

// How many of an experiment's claims hold, fail, and are undecided.
struct ClaimCounts {
  int64_t hold = 0;
  int64_t fail = 0;
  int64_t undecided = 0;
};
ClaimCounts CountClaims(const CellTable& table);

}  // namespace pace

#endif  // PACE_COMPARE_CLAIMS_H_
