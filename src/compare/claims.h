// What was found of an experiment's claims.
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_CLAIMS_H_
#define PACE_COMPARE_CLAIMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/cell_summary.h"
#include "compare/experiment.h"
#include "compare/statistics.h"

namespace pace {

enum class ClaimFinding {
  kReported,   // it names no bound
  kHolds,      // with its whole interval, and in view of its family
  kFails,      // likewise
  kUndecided,  // the interval straddles a bound, some seed is censored or has no value, or the
               // family leaves it open
};

// Beside the published number.
enum class PaperFinding {
  kNone,       // none was published
  kSame,       // on the same side of 1 (a recovered share: of 0), with its whole interval
  kOpposite,   // on the other side, with its whole interval
  kUndecided,  // the interval holds 1, or some seed is censored or has no value
};

struct ClaimResult {
  std::vector<SeedValue> values = {};  // one per seed; of a recovered share, those of its arm
  Estimate found = {};                 // over the seeds that have the value
  // Of a recovered share, instead of `found`.
  std::optional<RatioInterval> share = {};
  ClaimFinding finding = ClaimFinding::kReported;
  PaperFinding paper = PaperFinding::kNone;
  // Of a claim with a bound: that its value lies on the bound, two-sided. 1 where seeds are
  // missing or censored, or the share is not defined.
  std::optional<double> p_value = {};
  // Of a claim with a family: adjusted by Holm over the family, for `finding`.
  std::optional<double> adjusted_p = {};
};

// One value per seed: of the claim's arm, or its ratio to that of the other.
std::vector<SeedValue> SeedValuesOf(const CellTable& table, const Claim& claim);

// One claim by itself, whatever its family.
ClaimResult Examine(const CellTable& table, const Claim& claim);
// All claims of the experiment, in order. A claim of a family is decided only if its adjusted
// p-value is below 0.05, too.
std::vector<ClaimResult> ExamineAll(const CellTable& table);

std::string_view Name(ClaimFinding finding);
std::string_view Name(PaperFinding finding);

// "at most 1.02"; a dash where there is no bound.
std::string BoundText(const Claim& claim);
// "step_seconds, pace / async"; "area, (pace − async) / (sync − async)"
std::string MeasureText(const Claim& claim);

// "1.010 ± 0.012", and how many seeds have it if not all; of arrivals as ShowArrivals; of a
// recovered share "0.57 [0.47, 0.70]", or why it is not defined. With the adjusted p-value.
std::string FoundText(const Claim& claim, const ClaimResult& result);

// How many of an experiment's claims hold, fail, and are undecided.
struct ClaimCounts {
  int64_t hold = 0;
  int64_t fail = 0;
  int64_t undecided = 0;
};
ClaimCounts CountClaims(const CellTable& table);

}  // namespace pace

#endif  // PACE_COMPARE_CLAIMS_H_
