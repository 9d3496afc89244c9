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

constexpr std::array<std::string_view, 27> kNames = {
    "base",       "best",         "best_step",   "final",         "area",      "gain",
    "equal_time", "equal_tokens", "reach",       "step_seconds",  "waiting",   "assembly",
    "generation", "lag",          "scored",      "occupancy",     "rejected",  "length_ratio",
    "hours",      "gpu_hours",    "mega_tokens", "never_trained", "equal_gpu", "reach95",
    "pool_wait",  "length",       "settling"};

// Best accuracy within what the baseline's run used of something.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kEqual = {
    {{"equal_time", "time"},
     {"equal_gpu", "cost/gpu_time"},
     {"equal_tokens", "cost/tokens_generated"}}};

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

double SettledMean(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : MeanFrom(*column, column->size() / 2);
}

double Last(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : column->back();
}

const CellEvaluation* BestOf(const Cell& cell) {
  const CellEvaluation* best = nullptr;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    if (best == nullptr || evaluation.accuracy > best->accuracy) best = &evaluation;
  }
  return best;
}

// Mean accuracy over updates, by trapezoids.
double AreaOf(const Cell& cell) {
  const auto& evaluations = cell.evaluations;
  if (evaluations.size() < 2 || evaluations.back().step == evaluations.front().step) return kNan;
  double area = 0;
  for (size_t i = 1; i < evaluations.size(); ++i) {
    area += 0.5 * (evaluations[i].accuracy + evaluations[i - 1].accuracy) *
            static_cast<double>(evaluations[i].step - evaluations[i - 1].step);
  }
  return area / static_cast<double>(evaluations.back().step - evaluations.front().step);
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
  const double budget = Last(other, column) * (1 + 1e-6);
  double best = kNan;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    if (TotalAt(cell, column, evaluation) > budget) continue;
    if (std::isnan(best) || evaluation.accuracy > best) best = evaluation.accuracy;
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

double AccuracyValue(const Cell& cell, std::string_view name) {
  const CellEvaluation* const best = BestOf(cell);
  if (best == nullptr) return kNan;
  if (name == "base") return cell.evaluations.front().accuracy;
  if (name == "best") return best->accuracy;
  if (name == "best_step") return static_cast<double>(best->step);
  if (name == "final") return cell.evaluations.back().accuracy;
  if (name == "gain") {
    const double before = cell.evaluations.front().accuracy;
    return before > 0 ? cell.evaluations.back().accuracy / before : kNan;
  }
  return AreaOf(cell);
}

double RunValue(const Cell& cell, std::string_view name) {
  if (name == "step_seconds") {
    const std::vector<double>* const steps = ColumnOf(cell, "time/step");
    return steps == nullptr ? kNan : MeanFrom(*steps, 0);
  }
  if (name == "waiting") return SettledMean(cell, "staleness/waiting/mean");
  if (name == "assembly") return SettledMean(cell, "staleness/waiting_assembly/mean");
  if (name == "pool_wait") return SettledMean(cell, "staleness/waiting_pool/mean");
  if (name == "length") return SettledMean(cell, "selection/length_trained");
  if (name == "generation") return SettledMean(cell, "staleness/generation/mean");
  if (name == "lag") return SettledMean(cell, "staleness/lag/mean");
  if (name == "scored") return SettledMean(cell, "prefix/scored_fraction");
  if (name == "occupancy") return SettledMean(cell, "pool/occupancy");
  if (name == "rejected") {
    return SettledMean(cell, "admission/rejected") / SettledMean(cell, "admission/offered");
  }
  if (name == "length_ratio") {
    return SettledMean(cell, "selection/length_trained") /
           SettledMean(cell, "selection/length_offered");
  }
  if (name == "hours") return Last(cell, "time") / 3600;
  if (name == "gpu_hours") return Last(cell, "cost/gpu_time") / 3600;
  if (name == "mega_tokens") return Last(cell, "cost/tokens_generated") * 1e-6;
  PACE_CHECK(name == "never_trained", "no value ", name);
  return Last(cell, "cost/tokens_never_trained") / Last(cell, "cost/tokens_generated");
}

}  // namespace

bool IsCellValue(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string CellValueNames() {
  std::string out;
  for (const std::string_view name : kNames) {
    if (!out.empty()) out += ", ";
    out += name;
  }
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
  PACE_CHECK(IsCellValue(name), "no value ", name);
  for (const char* accuracy : {"base", "best", "best_step", "final", "area", "gain"}) {
    if (name == accuracy) return AccuracyValue(cell, name);
  }
  for (const auto& [equal, column] : kEqual) {
    if (name != equal) continue;
    if (experiment_.baseline.empty()) return kNan;
    return BestWithin(cell, At(experiment_.baseline, cell.id.seed), column);
  }
  if (name == "settling") {
    const Result<Settings> settings = SettingsOf(experiment_, cell.id, {});
    if (!settings.ok()) return kNan;
    const auto target =
        static_cast<double>(settings->admission.TargetOccupancy(settings->batch.num_groups));
    return SettledMean(cell, "pool/occupancy") * SettledMean(cell, "throughput/consumed") /
           (target * SettledMean(cell, "throughput/produced"));
  }
  if (name == "reach" || name == "reach95") {
    if (experiment_.FindArm(kSync) == nullptr) return kNan;
    const Cell& sync = At(kSync, cell.id.seed);
    const CellEvaluation* const best = BestOf(sync);
    if (best == nullptr || best->time == 0) return kNan;
    const double base = sync.evaluations.front().accuracy;
    const double share = name == "reach" ? 1 : 0.95;
    const double wanted = base + share * (best->accuracy - base);
    return TimeToReach(cell, wanted) / TimeToReach(sync, wanted);
  }
  return RunValue(cell, name);
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
