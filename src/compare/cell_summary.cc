#include "compare/cell_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kSync = "sync";

// The first of the best; null without evaluations.
const CellEvaluation* BestEvaluation(const Cell& cell) {
  const CellEvaluation* best = nullptr;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    if (best == nullptr || evaluation.accuracy > best->accuracy) best = &evaluation;
  }
  return best;
}

// A column over steps; null where there is none.
const std::vector<double>* ColumnOf(const Cell& cell, std::string_view name) {
  const auto found = cell.steps.find(name);
  return found == cell.steps.end() || found->second.empty() ? nullptr : &found->second;
}

double MeanFrom(const std::vector<double>& values, size_t first) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = first; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    sum += values[i];
    ++count;
  }
  return count == 0 ? kNan : sum / static_cast<double>(count);
}

// Of a column: the mean over all steps and over their second half, and the last value; NaN
// where there is none.
double ColumnMean(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : MeanFrom(*column, 0);
}
double SettledMean(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : MeanFrom(*column, column->size() / 2);
}
double LastOf(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : column->back();
}
double HoursOf(const Cell& cell, std::string_view name) {
  return LastOf(cell, name) / 3600;
}

// Mean accuracy over updates, by trapezoids.
double AreaOf(const Cell& cell, std::string_view = {}) {
  const auto& evaluations = cell.evaluations;
  if (evaluations.size() < 2 || evaluations.back().step == evaluations.front().step) return kNan;
  double area = 0;
  for (size_t i = 1; i < evaluations.size(); ++i) {
    area += 0.5 * (evaluations[i].accuracy + evaluations[i - 1].accuracy) *
            static_cast<double>(evaluations[i].step - evaluations[i - 1].step);
  }
  return area / static_cast<double>(evaluations.back().step - evaluations.front().step);
}

double AccuracyBefore(const Cell& cell, std::string_view = {}) {
  return cell.evaluations.empty() ? kNan : cell.evaluations.front().accuracy;
}
double AccuracyAfter(const Cell& cell, std::string_view = {}) {
  return cell.evaluations.empty() ? kNan : cell.evaluations.back().accuracy;
}
double BestAccuracy(const Cell& cell, std::string_view = {}) {
  const CellEvaluation* const best = BestEvaluation(cell);
  return best == nullptr ? kNan : best->accuracy;
}
double BestStep(const Cell& cell, std::string_view = {}) {
  const CellEvaluation* const best = BestEvaluation(cell);
  return best == nullptr ? kNan : static_cast<double>(best->step);
}
double Gain(const Cell& cell, std::string_view = {}) {
  const double before = AccuracyBefore(cell);
  return before > 0 ? AccuracyAfter(cell) / before : kNan;
}

// A value of a single cell, NaN where it has none: `of` the column, over the same of another
// column where one is named. A new value is a line of the table.
struct CellValue {
  std::string_view name;
  double (*of)(const Cell&, std::string_view column);
  std::string_view column = {};
  std::string_view over = {};

  double Of(const Cell& cell) const {
    return over.empty() ? of(cell, column) : of(cell, column) / of(cell, over);
  }
};
constexpr auto kValues = std::to_array<CellValue>({
    {"base", AccuracyBefore},
    {"best", BestAccuracy},
    {"best_step", BestStep},
    {"final", AccuracyAfter},
    {"area", AreaOf},
    {"gain", Gain},
    {"step_seconds", ColumnMean, "time/step"},
    {"wait_seconds", ColumnMean, "time/wait_data"},
    {"train_seconds", ColumnMean, "time/train"},
    {"sync_seconds", ColumnMean, "time/sync"},
    {"rescore_seconds", ColumnMean, "time/rescore_visible"},
    {"hidden_seconds", ColumnMean, "time/rescore_hidden"},
    {"other_seconds", ColumnMean, "time/other"},
    {"prompt_seconds",
     [](const Cell& cell, std::string_view) {
       return ColumnMean(cell, "time/step") / SettledMean(cell, "throughput/consumed");
     }},
    {"waiting", SettledMean, "staleness/waiting/mean"},
    {"assembly", SettledMean, "staleness/waiting_assembly/mean"},
    {"pool_wait", SettledMean, "staleness/waiting_pool/mean"},
    {"generation", SettledMean, "staleness/generation/mean"},
    {"lag", SettledMean, "staleness/lag/mean"},
    {"scored", SettledMean, "prefix/scored_fraction"},
    {"occupancy", SettledMean, "pool/occupancy"},
    {"rejected", SettledMean, "admission/rejected", "admission/offered"},
    {"length", SettledMean, "selection/length_trained"},
    {"length_ratio", SettledMean, "selection/length_trained", "selection/length_offered"},
    {"reward", SettledMean, "selection/reward_trained"},
    {"reward_ratio", SettledMean, "selection/reward_trained", "selection/reward_offered"},
    {"hours", HoursOf, "time"},
    {"gpu_hours", HoursOf, "cost/gpu_time"},
    {"mega_tokens", [](const Cell& cell,
                       std::string_view) { return LastOf(cell, "cost/tokens_generated") * 1e-6; }},
    {"never_trained", LastOf, "cost/tokens_never_trained", "cost/tokens_generated"},
    {"turns", SettledMean, "selection/turns_trained"},
    {"tool_calls", SettledMean, "tools/calls"},
    {"tool_success", SettledMean, "tools/success"},
    {"tool_success_begin",
     [](const Cell& cell, std::string_view) {
       const std::vector<double>* const column = ColumnOf(cell, "tools/success");
       return column == nullptr ? kNan : column->front();
     }},
    {"tool_seconds", SettledMean, "tools/seconds"},
});

// Null when there is none of that name.
const CellValue* FindCellValue(std::string_view name) {
  const auto found = std::ranges::find(kValues, name, &CellValue::name);
  return found == kValues.end() ? nullptr : &*found;
}

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
  for (const CellValue& value : kValues) out += Concat(value.name, ", ");
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
  if (const CellValue* const value = FindCellValue(name)) return value->Of(cell);
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
