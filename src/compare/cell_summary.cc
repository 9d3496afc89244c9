#include "compare/cell_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "compare/cell_values.h"
#include "core/check.h"

namespace pace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kSync = "sync";

// Best accuracy within what the baseline's run used of something.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kEqual = {
    {{"equal_time", "time"},
     {"equal_gpu", "cost/gpu_time"},
     {"equal_tokens", "cost/tokens_generated"}}};
// How far on the way from Sync's first accuracy to its best.
constexpr std::array<std::pair<std::string_view, double>, 2> kReach = {
    {{"reach", 1.0}, {"reach95", 0.95}}};
constexpr std::string_view kSettling = "settling";

// Names of values that need more than the cell itself.
std::vector<std::string_view> TableValueNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, column] : kEqual) names.push_back(name);
  for (const auto& [name, share] : kReach) names.push_back(name);
  names.push_back(kSettling);
  return names;
}

// A running total as it stood at an evaluation.
double TotalAt(const Cell& cell, std::string_view column, const CellEvaluation& evaluation) {
  const std::vector<double>* const totals = ColumnOf(cell, column);
  if (evaluation.step == 0 || totals == nullptr) return 0;
  return (*totals)[std::min(totals->size(), static_cast<size_t>(evaluation.step)) - 1];
}

// The best accuracy of a cell before it has used up what another used in all.
double BestWithin(const Cell& cell, const Cell& other, std::string_view column) {
  // Sums of the same step times may differ in their last digits.
  const double budget = LastOf(other, column) * (1 + 1e-6);
  double best = kNan;
  const CellEvaluation* before = nullptr;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    const double total = TotalAt(cell, column, evaluation);
    double accuracy = evaluation.accuracy;
    if (total > budget) {
      if (before == nullptr) return best;
      // Where the budget ends, between two evaluations.
      const double from = TotalAt(cell, column, *before);
      accuracy = before->accuracy +
                 (budget - from) / (total - from) * (evaluation.accuracy - before->accuracy);
    }
    if (std::isnan(best) || accuracy > best) best = accuracy;
    if (total > budget) return best;
    before = &evaluation;
  }
  return best;
}

// When the curve first reaches `accuracy`, evaluations joined by straight lines.
double TimeToReach(const Cell& cell, double accuracy) {
  const auto& evaluations = cell.evaluations;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    if (evaluations[i].accuracy < accuracy) continue;
    if (i == 0) return evaluations[0].time;
    const CellEvaluation& before = evaluations[i - 1];
    const double part = (accuracy - before.accuracy) / (evaluations[i].accuracy - before.accuracy);
    return before.time + part * (evaluations[i].time - before.time);
  }
  return kNan;
}

double TimeOverSync(const Cell& cell, const Cell& sync, double share) {
  const CellEvaluation* const best = BestEvaluation(sync);
  if (best == nullptr || best->time == 0) return kNan;
  const double base = sync.evaluations.front().accuracy;
  const double wanted = base + share * (best->accuracy - base);
  return TimeToReach(cell, wanted) / TimeToReach(sync, wanted);
}

}  // namespace

bool IsCellValue(std::string_view name) {
  const std::vector<std::string_view> names = TableValueNames();
  return FindCellValue(name) != nullptr ||
         std::find(names.begin(), names.end(), name) != names.end();
}

std::string CellValueNames() {
  std::string out;
  for (const NamedValue& value : CellValues()) out += Concat(value.name, ", ");
  for (const std::string_view name : TableValueNames()) out += Concat(name, ", ");
  out.resize(out.size() - 2);
  return out;
}

CellTable::CellTable(const Experiment& experiment, const std::vector<Cell>& cells)
    : experiment_(experiment) {
  for (const Cell& cell : cells) {
    if (experiment.FindArm(cell.id.arm) != nullptr) cells_.push_back(cell);
  }
  const auto is_there = [this](const std::string& arm, int64_t seed) {
    return std::any_of(cells_.begin(), cells_.end(),
                       [&](const Cell& cell) { return cell.id == CellId{arm, seed}; });
  };
  for (const Cell& cell : cells_) {
    if (cell.id.arm != experiment.arms.front().name) continue;
    const bool all = std::all_of(experiment.arms.begin(), experiment.arms.end(),
                                 [&](const Arm& arm) { return is_there(arm.name, cell.id.seed); });
    if (all) seeds_.push_back(cell.id.seed);
  }
  std::sort(seeds_.begin(), seeds_.end());
}

const Cell& CellTable::At(std::string_view arm, int64_t seed) const {
  for (const Cell& cell : cells_) {
    if (cell.id.arm == arm && cell.id.seed == seed) return cell;
  }
  PACE_CHECK(false, "no cell ", arm, ", seed ", seed);
  return cells_.front();
}

double CellTable::Value(const Cell& cell, std::string_view name) const {
  if (const NamedValue* const value = FindCellValue(name)) return value->of(cell);
  for (const auto& [equal, column] : kEqual) {
    if (name != equal) continue;
    if (experiment_.baseline.empty()) return kNan;
    return BestWithin(cell, At(experiment_.baseline, cell.id.seed), column);
  }
  for (const auto& [reach, share] : kReach) {
    if (name != reach) continue;
    if (experiment_.FindArm(kSync) == nullptr) return kNan;
    return TimeOverSync(cell, At(kSync, cell.id.seed), share);
  }
  PACE_CHECK(name == kSettling, "no value ", name);
  const Result<Settings> settings = SettingsOf(experiment_, cell.id, {});
  if (!settings.ok()) return kNan;
  const int64_t target = settings->admission.TargetOccupancy(settings->batch.num_groups);
  return SettledMean(cell, "pool/occupancy") * SettledMean(cell, "throughput/consumed") /
         (static_cast<double>(target) * SettledMean(cell, "throughput/produced"));
}

std::vector<double> CellTable::Values(std::string_view arm, std::string_view name) const {
  std::vector<double> values;
  for (const int64_t seed : seeds_) values.push_back(Value(At(arm, seed), name));
  return values;
}

Estimate CellTable::Of(std::string_view arm, std::string_view name) const {
  return EstimateOf(Values(arm, name));
}

}  // namespace pace
