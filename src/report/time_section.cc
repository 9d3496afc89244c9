#include <algorithm>
#include <array>

#include "config/methods.h"
#include "core/concat.h"
#include "record/worker_metrics.h"
#include "report/axes.h"
#include "report/chart.h"
#include "report/sections.h"
#include "report/series.h"
#include "report/table.h"

namespace pace {
namespace {

struct TimePart {
  std::string_view metric, name, classes;
};
constexpr std::array<TimePart, 5> kParts = {{
    {"time/train", "training", "t-train"},
    {"time/wait_data", "waiting for data", "t-wait"},
    {"time/sync", "weight sync", "t-sync"},
    {"time/rescore_visible", "rescoring, visible", "t-rescore"},
    {"time/other", "other", "t-other"},
}};

// The run's own settings first, under the name a comparison gave it, then the
// caller's table.
std::optional<double> ReferenceFor(const ReportView& view, size_t run) {
  const RunData& data = view.runs[run];
  for (const std::string& method : {data.manifest.name, view.summaries[run].method}) {
    const auto own = ReferenceSeconds(data.settings.compare, method);
    if (own.ok() && own->has_value()) return *own;
    const auto given = view.reference_step_seconds.find(method);
    if (given != view.reference_step_seconds.end()) return given->second;
  }
  return std::nullopt;
}

std::string Seconds3(std::optional<double> value) {
  return value.has_value() ? Readable(*value) : "\u2013";
}

// Workers of runs that recorded them, one row each; empty without any.
std::string WorkerTable(const ReportView& view) {
  Table table;
  table.caption = "Rollout workers, means over the second half; failures are of the whole run";
  table.corner = "run";
  table.columns = {"worker",          "tokens/s",       "seconds to the first token",
                   "pauses per step", "seconds paused", "failures"};
  for (size_t i = 0; i < view.runs.size(); ++i) {
    const MetricsTable& metrics = view.runs[i].metrics;
    for (int64_t worker = 0; metrics.Has(WorkerMetric(worker, "tokens_per_s")); ++worker) {
      TableRow row;
      row.head = view.summaries[i].name;
      row.run = i;
      row.cells.push_back(Concat(worker));
      for (const std::string_view name : {"tokens_per_s", "first_token_s", "pauses", "pause_s"}) {
        row.cells.push_back(Seconds3(SettledMean(metrics, WorkerMetric(worker, name))));
      }
      double failures = 0;  // of the whole run
      for (const auto& value : metrics.Column(WorkerMetric(worker, "failures"))) {
        failures += value.value_or(0);
      }
      row.cells.push_back(Readable(failures));
      table.rows.push_back(std::move(row));
    }
  }
  return table.rows.empty() ? "" : RenderTable(table);
}

}  // namespace

std::string TimeSection(const ReportView& view) {
  Chart chart;
  chart.figure.name = "time";
  const bool all_virtual = std::all_of(view.summaries.begin(), view.summaries.end(),
                                       [](const RunSummary& s) { return s.is_virtual; });
  chart.figure.caption = all_virtual ? "Virtual seconds per step" : "Seconds per step";
  chart.description =
      "Mean seconds per step of each run, stacked from parts that do not overlap; rescoring that "
      "ran beside them is hatched.";
  chart.x_name = all_virtual ? "virtual seconds per step" : "seconds per step";
  chart.unit = " s";
  Table table;
  table.caption = Concat(chart.figure.caption, ", means over the second half");
  table.corner = "run";
  for (const TimePart& part : kParts) {
    chart.parts.push_back({std::string(part.name), std::string(part.classes)});
    table.columns.emplace_back(part.name);
  }
  chart.beside = {"rescoring, hidden", "t-hidden"};
  table.columns.insert(table.columns.end(), {"step", "hidden", "reference"});
  for (size_t i = 0; i < view.runs.size(); ++i) {
    const MetricsTable& metrics = view.runs[i].metrics;
    if (!metrics.Has("time/step")) continue;
    Bar bar;
    TableRow row;
    bar.name = row.head = view.summaries[i].name;
    row.run = i;
    for (const TimePart& part : kParts) {
      const std::optional<double> mean = SettledMean(metrics, part.metric);
      bar.parts.push_back(mean.value_or(0));
      row.cells.push_back(Seconds3(mean));
    }
    bar.beside = SettledMean(metrics, "time/rescore_hidden").value_or(0);
    bar.reference = ReferenceFor(view, i);
    row.cells.push_back(Seconds3(SettledMean(metrics, "time/step")));
    row.cells.push_back(Seconds3(SettledMean(metrics, "time/rescore_hidden")));
    row.cells.push_back(Seconds3(bar.reference));
    chart.bars.push_back(std::move(bar));
    table.rows.push_back(std::move(row));
  }
  if (chart.bars.empty()) return "";
  return RenderSection("time", "Where the time of a step goes",
                       "Parts that do not overlap and add up to the step. Rescoring that ran "
                       "while rollouts waited anyway is hatched below the bar: it costs the step "
                       "nothing.",
                       Concat("<div class=\"charts two\">", RenderBars(chart), RenderTable(table),
                              "</div>", TimelineFigures(view), WorkerTable(view)));
}

}  // namespace pace
