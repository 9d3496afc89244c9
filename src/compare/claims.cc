#include "compare/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "compare/statistics.h"

namespace pace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSignificance = 0.05;

// x / y. Where y is censored nothing is known of the ratio.
SeedValue Ratio(const SeedValue& x, const SeedValue& y) {
  SeedValue out{.censored = x.censored || y.censored, .held = x.held || y.held};
  if (!y.censored && y.number != 0) out.number = x.number / y.number;
  return out;
}

// What the arms of a recovered share have on every seed: x - from and to - from.
struct Recovery {
  std::vector<double> gained;
  std::vector<double> lost;
};
Recovery RecoveryOf(const CellTable& table, const Claim& claim) {
  const std::vector<double> of = table.Values(claim.of, claim.value);
  const std::vector<double> from = table.Values(claim.from, claim.value);
  const std::vector<double> to = table.Values(claim.to, claim.value);
  Recovery out;
  for (size_t i = 0; i < of.size(); ++i) {
    out.gained.push_back(of[i] - from[i]);
    out.lost.push_back(to[i] - from[i]);
  }
  return out;
}

struct Limits {
  double low = 0;
  double high = 0;
};

// Undecided where the limits are NaN.
ClaimFinding FindingOf(const Claim& claim, const Limits& found) {
  if (!claim.has_bound()) return ClaimFinding::kReported;
  const double least = claim.at_least.value_or(-kInfinity);
  const double most = claim.at_most.value_or(kInfinity);
  if (found.high < least || found.low > most) return ClaimFinding::kFails;
  // On a bound: only with an interval of no width.
  const bool exact = found.low == found.high;
  const bool above = exact ? found.low >= least : found.low > least;
  const bool below = exact ? found.high <= most : found.high < most;
  return above && below ? ClaimFinding::kHolds : ClaimFinding::kUndecided;
}

PaperFinding BesidePaper(const Claim& claim, const Limits& found) {
  if (!claim.paper.has_value()) return PaperFinding::kNone;
  const double neutral = claim.is_recovered_share() ? 0 : 1;
  const bool above = found.low > neutral;
  if (!above && !(found.high < neutral)) return PaperFinding::kUndecided;
  return above == (*claim.paper > neutral) ? PaperFinding::kSame : PaperFinding::kOpposite;
}

// That the value lies on `bound`. A recovered share does where gained - bound * lost is 0.
double PValueAt(const CellTable& table, const Claim& claim, const ClaimResult& result,
                double bound) {
  if (!claim.is_recovered_share()) return PValue(result.found, bound);
  const Recovery recovery = RecoveryOf(table, claim);
  std::vector<double> rest;
  for (size_t i = 0; i < recovery.gained.size(); ++i) {
    rest.push_back(recovery.gained[i] - bound * recovery.lost[i]);
  }
  return PValue(EstimateOf(rest), 0);
}

// Of the bound that is violated; of both where none is, as both must be shown to hold.
double PValueOf(const CellTable& table, const Claim& claim, const ClaimResult& result) {
  const double found = result.share.has_value() ? result.share->ratio : result.found.mean;
  if (std::isnan(found)) return 1;
  const bool exact = !result.share.has_value() && result.found.half_width == 0;
  double largest = 0;
  for (const auto& [bound, side] : {std::pair(claim.at_least, 1), std::pair(claim.at_most, -1)}) {
    if (!bound.has_value()) continue;
    const double distance = side * (found - *bound);
    if (exact && distance == 0) continue;
    const double p_value = PValueAt(table, claim, result, *bound);
    if (distance < 0) return p_value;
    largest = std::max(largest, p_value);
  }
  return largest;
}

void Undecide(ClaimResult& result) {
  if (result.finding != ClaimFinding::kReported) result.finding = ClaimFinding::kUndecided;
  if (result.paper != PaperFinding::kNone) result.paper = PaperFinding::kUndecided;
}

// "0.57 [0.47, 0.70]"
std::string ShareText(const Claim& claim, const RatioInterval& share) {
  if (!share.bounded) return Concat("undefined: ", claim.to, " and ", claim.from, " do not differ");
  return Concat(Fixed(share.ratio, 2), " [", Fixed(share.low, 2), ", ", Fixed(share.high, 2), "]");
}

}  // namespace

std::vector<SeedValue> SeedValuesOf(const CellTable& table, const Claim& claim) {
  std::vector<SeedValue> values = table.SeedValues(claim.of, claim.value);
  if (claim.over.empty()) return values;
  const std::vector<SeedValue> others = table.SeedValues(claim.over, claim.value);
  for (size_t i = 0; i < values.size(); ++i) values[i] = Ratio(values[i], others[i]);
  return values;
}

ClaimResult Examine(const CellTable& table, const Claim& claim) {
  ClaimResult result;
  result.values = SeedValuesOf(table, claim);
  result.found = EstimateOf(NumbersOf(result.values));
  Limits limits{result.found.low(), result.found.high()};
  size_t count = result.found.count;
  if (claim.is_recovered_share()) {
    const Recovery recovery = RecoveryOf(table, claim);
    result.share = FiellerRatio(recovery.gained, recovery.lost);
    limits = {result.share->low, result.share->high};
    count = result.share->count;
  }
  result.finding = FindingOf(claim, limits);
  result.paper = BesidePaper(claim, limits);
  if (claim.has_bound()) result.p_value = PValueOf(table, claim, result);
  // The seeds that have the value are not a sample of all: runs that reach an accuracy are
  // the faster ones.
  if (count < result.values.size()) {
    Undecide(result);
    if (result.p_value.has_value()) result.p_value = 1;
  }
  return result;
}

std::vector<ClaimResult> ExamineAll(const CellTable& table) {
  const std::vector<Claim>& claims = table.experiment().claims;
  std::vector<ClaimResult> results;
  std::map<std::string, std::vector<size_t>> families;
  for (size_t i = 0; i < claims.size(); ++i) {
    results.push_back(Examine(table, claims[i]));
    if (!claims[i].family.empty()) families[claims[i].family].push_back(i);
  }
  for (const auto& [family, members] : families) {
    std::vector<double> p_values;
    for (const size_t i : members) p_values.push_back(*results[i].p_value);
    const std::vector<double> adjusted = HolmAdjusted(p_values);
    for (size_t k = 0; k < members.size(); ++k) {
      ClaimResult& result = results[members[k]];
      result.adjusted_p = adjusted[k];
      if (adjusted[k] >= kSignificance) result.finding = ClaimFinding::kUndecided;
    }
  }
  return results;
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
  if (claim.is_recovered_share()) {
    return Concat(claim.value, ", (", claim.of, " − ", claim.from, ") / (", claim.to, " − ",
                  claim.from, ")");
  }
  return claim.over.empty() ? Concat(claim.value, " of ", claim.of)
                            : Concat(claim.value, ", ", claim.of, " / ", claim.over);
}

std::string FoundText(const Claim& claim, const ClaimResult& result) {
  std::string out = result.share.has_value() ? ShareText(claim, *result.share)
                    : IsArrival(claim.value) ? ShowArrivals(result.values, 1, 3)
                                             : Show(result.found, 1, 3);
  const size_t num_seeds = result.values.size();
  const size_t count = result.share.has_value() ? result.share->count : result.found.count;
  if (count < num_seeds && (result.share.has_value() || !IsArrival(claim.value))) {
    out += Concat(" (", count, " of ", num_seeds, " seeds have a value)");
  }
  if (const auto num_held = std::ranges::count_if(result.values, &SeedValue::held)) {
    out += Concat(" (last accuracy held in ", num_held, " of ", num_seeds, ")");
  }
  if (result.adjusted_p.has_value()) {
    const bool tiny = *result.adjusted_p < 0.001;
    out += Concat(", p ", tiny ? "< 0.001" : "= " + Fixed(*result.adjusted_p, 3), " in family ",
                  claim.family);
  }
  return out;
}

ClaimCounts CountClaims(const CellTable& table) {
  ClaimCounts counts;
  for (const ClaimResult& result : ExamineAll(table)) {
    switch (result.finding) {
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
