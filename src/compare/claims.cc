#include "compare/claims.h"

#include <optional>
#include <utility>

#include "compare/statistics.h"

namespace pace {
namespace {

Estimate FoundOf(const CellTable& table, const Claim& claim) {
  if (claim.over.empty()) return table.Of(claim.of, claim.value);
  return PairedRatio(table.Values(claim.of, claim.value), table.Values(claim.over, claim.value));
}

ClaimFinding FindingOf(const Claim& claim, const Estimate& found) {
  if (!claim.at_least.has_value() && !claim.at_most.has_value()) return ClaimFinding::kReported;
  if (found.count == 0) return ClaimFinding::kUndecided;
  bool undecided = false;
  for (const auto& [bound, wanted] :
       {std::pair(claim.at_least, Finding::kAbove), std::pair(claim.at_most, Finding::kBelow)}) {
    if (!bound.has_value()) continue;
    if (found.half_width == 0 && found.mean == *bound) continue;  // on the bound, exactly
    const Finding finding = Against(found, *bound);
    if (finding == Finding::kUndecided) {
      undecided = true;
    } else if (finding != wanted) {
      return ClaimFinding::kFails;
    }
  }
  return undecided ? ClaimFinding::kUndecided : ClaimFinding::kHolds;
}

PaperFinding BesidePaper(const Claim& claim, const Estimate& found) {
  if (!claim.paper.has_value()) return PaperFinding::kNone;
  const Finding finding = found.count == 0 ? Finding::kUndecided : Against(found, 1);
  if (finding == Finding::kUndecided) return PaperFinding::kUndecided;
  return (finding == Finding::kAbove) == (*claim.paper > 1) ? PaperFinding::kSame
                                                            : PaperFinding::kOpposite;
}

}  // namespace

ClaimResult Examine(const CellTable& table, const Claim& claim) {
  const Estimate found = FoundOf(table, claim);
  ClaimResult result{found, FindingOf(claim, found), BesidePaper(claim, found)};
  // Seeds without the value are not a sample of their own: runs that never reach an
  // accuracy have no time to it, and those that do are the faster ones.
  if (found.count < table.seeds().size()) {
    if (result.finding != ClaimFinding::kReported) result.finding = ClaimFinding::kUndecided;
    if (result.paper != PaperFinding::kNone) result.paper = PaperFinding::kUndecided;
  }
  return result;
}

std::string_view Name(ClaimFinding finding) {
  switch (finding) {
    case ClaimFinding::kReported:
      return "reported";
    case ClaimFinding::kHolds:
      return "holds";
    case ClaimFinding::kFails:
      return "does not hold";
    case ClaimFinding::kUndecided:
      return "undecided";
  }
  PACE_CHECK(false, "unknown finding");
}

std::string_view Name(PaperFinding finding) {
  switch (finding) {
    case PaperFinding::kNone:
      return "–";
    case PaperFinding::kSame:
      return "same direction";
    case PaperFinding::kOpposite:
      return "opposite";
    case PaperFinding::kUndecided:
      return "undecided";
  }
  PACE_CHECK(false, "unknown finding");
}

std::string BoundText(const Claim& claim) {
  std::string out;
  if (claim.at_least.has_value()) out = Concat("≥ ", *claim.at_least);
  if (claim.at_most.has_value()) out += Concat(out.empty() ? "" : ", ", "≤ ", *claim.at_most);
  return out.empty() ? "–" : out;
}

std::string MeasureText(const Claim& claim) {
  return claim.over.empty() ? Concat(claim.value, " of ", claim.of)
                            : Concat(claim.value, ", ", claim.of, " / ", claim.over);
}

std::string FoundText(const CellTable& table, const ClaimResult& result) {
  std::string out = Show(result.found, 1, 3);
  if (result.found.count < table.seeds().size()) {
    out += Concat(" (", result.found.count, " of ", table.seeds().size(), " seeds have a value)");
  }
  return out;
}

ClaimCounts CountClaims(const CellTable& table) {
  ClaimCounts counts;
  for (const Claim& claim : table.experiment().claims) {
    switch (Examine(table, claim).finding) {
      case ClaimFinding::kReported:
        break;
      case ClaimFinding::kHolds:
        ++counts.hold;
        break;
      case ClaimFinding::kFails:
        ++counts.fail;
        break;
      case ClaimFinding::kUndecided:
        ++counts.undecided;
        break;
    }
  }
  return counts;
}

}  // namespace pace
