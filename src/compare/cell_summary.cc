#include "compare/cell_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "compare/learning_curve.h"
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

double PassAfter(const Cell& cell, std::string_view = {}) {
  return cell.evaluations.empty() ? kNan : cell.evaluations.back().pass.value_or(kNan);
}
double GreedyAfter(const Cell& cell, std::string_view = {}) {
  return cell.evaluations.empty() ? kNan : cell.evaluations.back().greedy.value_or(kNan);
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
    {"pass", PassAfter},
    {"greedy", GreedyAfter},
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
    {"entropy", SettledMean, "train/entropy"},
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

// Of these values, the ones that are computed from correct responses.
constexpr auto kOfAccuracy =
    std::to_array<std::string_view>({"base", "best", "best_step", "final", "area", "gain", "pass"});

// Best accuracy within what the baseline's run used of something.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kEqual = {
    {{"equal_time", "time"},
     {"equal_gpu", "cost/gpu_time"},
     {"equal_tokens", "cost/tokens_generated"}}};
// What a run needs for a share of the way from Sync's first accuracy to its best.
enum class ArrivalUnit { kOverSync, kUpdates, kSeconds };
struct ArrivalValue {
  std::string_view name;
  ArrivalUnit unit;
  double share;
};
constexpr auto kArrivals = std::to_array<ArrivalValue>({
    {"reach", ArrivalUnit::kOverSync, 1},
    {"reach95", ArrivalUnit::kOverSync, 0.95},
    {"updates50", ArrivalUnit::kUpdates, 0.5},
    {"updates80", ArrivalUnit::kUpdates, 0.8},
    {"time50", ArrivalUnit::kSeconds, 0.5},
    {"time80", ArrivalUnit::kSeconds, 0.8},
});

// Null when there is none of that name.
const ArrivalValue* FindArrival(std::string_view name) {
  const auto found = std::ranges::find(kArrivals, name, &ArrivalValue::name);
  return found == kArrivals.end() ? nullptr : &*found;
}

// Values that need more than the cell itself.
constexpr std::string_view kTimeArea = "time_area";
constexpr std::string_view kSettling = "settling";
constexpr std::string_view kTokenSeconds = "token_seconds";
constexpr std::string_view kWasted = "wasted";

// An accuracy between Sync's first one and its best one; none where it did not learn.
std::optional<double> AccuracyOnTheWay(const Cell& sync, double share) {
  const CellEvaluation* const best = BestEvaluation(sync);
  if (best == nullptr || best->time == 0) return std::nullopt;
  const double base = sync.evaluations.front().accuracy;
  return std::min(best->accuracy, base + share * (best->accuracy - base));
}

// The names of all values that need more than the cell itself.
std::vector<std::string_view> TableValueNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, column] : kEqual) names.push_back(name);
  for (const ArrivalValue& arrival : kArrivals) names.push_back(arrival.name);
  for (const std::string_view name : {kTimeArea, kSettling, kTokenSeconds, kWasted}) {
    names.push_back(name);
  }
  return names;
}

// Not defined where Sync did not learn.
SeedValue ArrivalOf(const ArrivalValue& value, const Cell& cell, const Cell& sync,
                    double updates_per_step) {
  const std::optional<double> wanted = AccuracyOnTheWay(sync, value.share);
  if (!wanted.has_value() || cell.evaluations.empty()) return {};
  const LearningCurve curve = value.unit == ArrivalUnit::kUpdates
                                  ? LearningCurve::OverUpdates(cell, updates_per_step)
                                  : LearningCurve::OverTime(cell);
  const Arrival arrival = curve.ArrivalAt(*wanted);
  const double unit = value.unit == ArrivalUnit::kOverSync
                          ? LearningCurve::OverTime(sync).ArrivalAt(*wanted).at
                          : 1;
  return {.number = arrival.at / unit, .censored = arrival.censored};
}

// Occupancy over the one predicted, N_tar P/C.
double SettlingOf(const Cell& cell, const Settings& settings) {
  const int64_t target = settings.admission.TargetOccupancy(settings.batch.num_groups);
  return SettledMean(cell, "pool/occupancy") * SettledMean(cell, "throughput/consumed") /
         (static_cast<double>(target) * SettledMean(cell, "throughput/produced"));
}

// Policy tokens of all groups that were trained on: in every step their number, their size and
// the mean length of their responses are known.
double TrainedTokens(const Cell& cell, const Settings& settings) {
  const std::vector<double>* const lengths = ColumnOf(cell, "selection/length_trained");
  const std::vector<double>* const offered = ColumnOf(cell, "admission/offered");
  const std::vector<double>* const rejected = ColumnOf(cell, "admission/rejected");
  if (lengths == nullptr || offered == nullptr || rejected == nullptr) return kNan;
  double total = 0;
  for (size_t i = 0; i < lengths->size(); ++i) {
    const double num_groups = (*offered)[i] - (*rejected)[i];
    if (num_groups > 0) total += num_groups * (*lengths)[i];
  }
  return total * static_cast<double>(settings.batch.group_size);
}

std::vector<size_t> SizesOf(const std::vector<ProblemCounts>& problems) {
  std::vector<size_t> sizes;
  for (const ProblemCounts& counts : problems) sizes.push_back(counts.correct.size());
  return sizes;
}

// Means over benchmarks of weighted means over problems.
void Weigh(const std::vector<std::vector<double>>& weights, CellEvaluation& evaluation) {
  PACE_CHECK(weights.size() == evaluation.problems.size(), "not the weights of these benchmarks");
  double accuracy = 0, pass = 0;
  for (size_t b = 0; b < weights.size(); ++b) {
    const std::vector<int64_t>& correct = evaluation.problems[b].correct;
    PACE_CHECK(weights[b].size() == correct.size(), "not the weights of these problems");
    double total = 0, sum = 0, solved = 0;
    for (size_t i = 0; i < correct.size(); ++i) {
      total += weights[b][i];
      sum += weights[b][i] * static_cast<double>(correct[i]);
      if (correct[i] > 0) solved += weights[b][i];
    }
    accuracy += sum / total / static_cast<double>(evaluation.num_responses);
    pass += solved / total;
  }
  evaluation.accuracy = accuracy / static_cast<double>(weights.size());
  evaluation.pass = pass / static_cast<double>(weights.size());
}

// What a run used in all. Sums of the same step times may differ in their last digits.
double BudgetOf(const Cell& cell, std::string_view column) {
  return LastOf(cell, column) * (1 + 1e-6);
}

}  // namespace

bool IsCellValue(std::string_view name) {
  const std::vector<std::string_view> names = TableValueNames();
  return FindCellValue(name) != nullptr ||
         std::find(names.begin(), names.end(), name) != names.end();
}

bool DependsOnProblems(std::string_view name) {
  const auto is_equal = [name](const auto& equal) { return equal.first == name; };
  return name == kTimeArea || FindArrival(name) != nullptr ||
         std::ranges::find(kOfAccuracy, name) != kOfAccuracy.end() ||
         std::ranges::any_of(kEqual, is_equal);
}

bool IsArrival(std::string_view name) {
  return FindArrival(name) != nullptr;
}

std::vector<double> NumbersOf(std::span<const SeedValue> values) {
  std::vector<double> numbers;
  for (const SeedValue& value : values) numbers.push_back(value.censored ? kNan : value.number);
  return numbers;
}

std::string ShowArrivals(std::span<const SeedValue> values, double factor, int digits) {
  const Estimate reached = EstimateOf(NumbersOf(values));
  const auto num_censored = std::ranges::count_if(values, &SeedValue::censored);
  if (num_censored == 0) {
    if (reached.count == 0) return "–";
    return Concat(Show(reached, factor, digits), " (", reached.count, " of ", values.size(),
                  " reached)");
  }
  double sum = 0;
  for (const SeedValue& value : values) sum += value.number;
  const double least = factor * sum / static_cast<double>(values.size());
  return Concat(std::isnan(least) ? "" : "≥ ", Fixed(least, digits), " (", num_censored, " of ",
                values.size(), " never reached)");
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
  for (const Arm& arm : experiment.arms) {
    Result<Settings> settings = SettingsOf(experiment, {arm.name, 1}, {});
    if (settings.ok()) settings_.emplace(arm.name, std::move(settings).value());
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

std::vector<size_t> CellTable::NumProblems() const {
  std::vector<size_t> sizes;
  for (const Cell& cell : cells_) {
    for (const CellEvaluation& evaluation : cell.evaluations) {
      const std::vector<size_t> found = SizesOf(evaluation.problems);
      if (found.empty() || (!sizes.empty() && found != sizes)) return {};
      sizes = found;
    }
  }
  return sizes;
}

void CellTable::WeighProblems(const std::vector<std::vector<double>>& weights) {
  for (Cell& cell : cells_) {
    for (CellEvaluation& evaluation : cell.evaluations) Weigh(weights, evaluation);
  }
}

SeedValue CellTable::ValueOf(const Cell& cell, std::string_view name) const {
  if (const CellValue* const value = FindCellValue(name)) return {.number = value->Of(cell)};
  for (const auto& [equal, column] : kEqual) {
    if (name != equal) continue;
    if (experiment_.baseline.empty()) return {};
    const double budget = BudgetOf(At(experiment_.baseline, cell.id.seed), column);
    return {.number = LearningCurve::OverTotal(cell, column).BestUpTo(budget)};
  }
  if (name == kTimeArea) return TimeAreaOf(cell);
  const auto settings = settings_.find(cell.id.arm);
  if (settings == settings_.end()) return {};
  if (const ArrivalValue* const arrival = FindArrival(name)) {
    if (experiment_.FindArm(kSync) == nullptr) return {};
    return ArrivalOf(*arrival, cell, At(kSync, cell.id.seed),
                     static_cast<double>(settings->second.batch.num_updates));
  }
  if (name == kSettling) return {.number = SettlingOf(cell, settings->second)};
  const double trained = TrainedTokens(cell, settings->second);
  if (name == kTokenSeconds) return {.number = LastOf(cell, "time") / trained};
  PACE_CHECK(name == kWasted, "no value ", name);
  // Columns carry six digits: a run that wasted nothing may be off by their rounding.
  const double wasted = 1 - trained / LastOf(cell, "cost/tokens_generated");
  return {.number = std::abs(wasted) < 1e-6 ? 0 : wasted};
}

SeedValue CellTable::TimeAreaOf(const Cell& cell) const {
  if (experiment_.baseline.empty() || cell.evaluations.empty()) return {};
  const double end = LastOf(At(experiment_.baseline, cell.id.seed), "time");
  const LearningCurve curve = LearningCurve::OverTime(cell);
  return {.number = curve.MeanUpTo(end), .held = curve.end() * (1 + 1e-6) < end};
}

std::vector<SeedValue> CellTable::SeedValues(std::string_view arm, std::string_view name) const {
  std::vector<SeedValue> values;
  for (const int64_t seed : seeds_) values.push_back(ValueOf(At(arm, seed), name));
  return values;
}

std::vector<double> CellTable::Values(std::string_view arm, std::string_view name) const {
  return NumbersOf(SeedValues(arm, name));
}

Estimate CellTable::Of(std::string_view arm, std::string_view name) const {
  return EstimateOf(Values(arm, name));
}

}  // namespace pace
