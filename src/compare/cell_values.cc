#include "compare/cell_values.h"

#include <array>
#include <cmath>
#include <limits>

namespace pace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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

double AccuracyBefore(const Cell& cell) {
  return cell.evaluations.empty() ? kNan : cell.evaluations.front().accuracy;
}
double AccuracyAfter(const Cell& cell) {
  return cell.evaluations.empty() ? kNan : cell.evaluations.back().accuracy;
}
double BestAccuracy(const Cell& cell) {
  const CellEvaluation* const best = BestEvaluation(cell);
  return best == nullptr ? kNan : best->accuracy;
}
double BestStep(const Cell& cell) {
  const CellEvaluation* const best = BestEvaluation(cell);
  return best == nullptr ? kNan : static_cast<double>(best->step);
}
double Gain(const Cell& cell) {
  const double before = AccuracyBefore(cell);
  return before > 0 ? AccuracyAfter(cell) / before : kNan;
}

constexpr auto kValues = std::to_array<NamedValue>({
    {"base", AccuracyBefore},
    {"best", BestAccuracy},
    {"best_step", BestStep},
    {"final", AccuracyAfter},
    {"area", AreaOf},
    {"gain", Gain},
    {"step_seconds", [](const Cell& cell) { return ColumnMean(cell, "time/step"); }},
    {"wait_seconds", [](const Cell& cell) { return ColumnMean(cell, "time/wait_data"); }},
    {"train_seconds", [](const Cell& cell) { return ColumnMean(cell, "time/train"); }},
    {"sync_seconds", [](const Cell& cell) { return ColumnMean(cell, "time/sync"); }},
    {"rescore_seconds", [](const Cell& cell) { return ColumnMean(cell, "time/rescore_visible"); }},
    {"hidden_seconds", [](const Cell& cell) { return ColumnMean(cell, "time/rescore_hidden"); }},
    {"other_seconds", [](const Cell& cell) { return ColumnMean(cell, "time/other"); }},
    {"prompt_seconds",
     [](const Cell& cell) {
       return ColumnMean(cell, "time/step") / SettledMean(cell, "throughput/consumed");
     }},
    {"waiting", [](const Cell& cell) { return SettledMean(cell, "staleness/waiting/mean"); }},
    {"assembly",
     [](const Cell& cell) { return SettledMean(cell, "staleness/waiting_assembly/mean"); }},
    {"pool_wait",
     [](const Cell& cell) { return SettledMean(cell, "staleness/waiting_pool/mean"); }},
    {"generation", [](const Cell& cell) { return SettledMean(cell, "staleness/generation/mean"); }},
    {"lag", [](const Cell& cell) { return SettledMean(cell, "staleness/lag/mean"); }},
    {"scored", [](const Cell& cell) { return SettledMean(cell, "prefix/scored_fraction"); }},
    {"occupancy", [](const Cell& cell) { return SettledMean(cell, "pool/occupancy"); }},
    {"rejected",
     [](const Cell& cell) {
       return SettledMean(cell, "admission/rejected") / SettledMean(cell, "admission/offered");
     }},
    {"length", [](const Cell& cell) { return SettledMean(cell, "selection/length_trained"); }},
    {"length_ratio",
     [](const Cell& cell) {
       return SettledMean(cell, "selection/length_trained") /
              SettledMean(cell, "selection/length_offered");
     }},
    {"reward", [](const Cell& cell) { return SettledMean(cell, "selection/reward_trained"); }},
    {"reward_ratio",
     [](const Cell& cell) {
       return SettledMean(cell, "selection/reward_trained") /
              SettledMean(cell, "selection/reward_offered");
     }},
    {"hours", [](const Cell& cell) { return LastOf(cell, "time") / 3600; }},
    {"gpu_hours", [](const Cell& cell) { return LastOf(cell, "cost/gpu_time") / 3600; }},
    {"mega_tokens", [](const Cell& cell) { return LastOf(cell, "cost/tokens_generated") * 1e-6; }},
    {"never_trained",
     [](const Cell& cell) {
       return LastOf(cell, "cost/tokens_never_trained") / LastOf(cell, "cost/tokens_generated");
     }},
    {"turns", [](const Cell& cell) { return SettledMean(cell, "selection/turns_trained"); }},
    {"tool_calls", [](const Cell& cell) { return SettledMean(cell, "tools/calls"); }},
    {"tool_success", [](const Cell& cell) { return SettledMean(cell, "tools/success"); }},
    {"tool_success_begin",
     [](const Cell& cell) {
       const std::vector<double>* const column = ColumnOf(cell, "tools/success");
       return column == nullptr ? kNan : column->front();
     }},
    {"tool_seconds", [](const Cell& cell) { return SettledMean(cell, "tools/seconds"); }},
});

}  // namespace

std::span<const NamedValue> CellValues() {
  return kValues;
}

const NamedValue* FindCellValue(std::string_view name) {
  for (const NamedValue& value : kValues) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

const std::vector<double>* ColumnOf(const Cell& cell, std::string_view name) {
  const auto found = cell.steps.find(name);
  return found == cell.steps.end() || found->second.empty() ? nullptr : &found->second;
}

double SettledMean(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : MeanFrom(*column, column->size() / 2);
}

double ColumnMean(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : MeanFrom(*column, 0);
}

double LastOf(const Cell& cell, std::string_view name) {
  const std::vector<double>* const column = ColumnOf(cell, name);
  return column == nullptr ? kNan : column->back();
}

const CellEvaluation* BestEvaluation(const Cell& cell) {
  const CellEvaluation* best = nullptr;
  for (const CellEvaluation& evaluation : cell.evaluations) {
    if (best == nullptr || evaluation.accuracy > best->accuracy) best = &evaluation;
  }
  return best;
}

}  // namespace pace
