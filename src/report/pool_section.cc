#include <utility>

#include "core/concat.h"
#include "report/axes.h"
#include "report/chart.h"
#include "report/sections.h"
#include "report/series.h"

namespace pace {
namespace {

constexpr size_t kMostPoints = 320;

struct MetricChart {
  std::string_view name, caption, metric, y_name, description;
  bool filtering_only = false;  // other runs may compute it without acting on it
};

constexpr MetricChart kMetricCharts[] = {
    {"occupancy", "Pool occupancy", "pool/occupancy", "groups",
     "Groups in the pool as each step began, one line per run."},
    {"waiting", "Waiting staleness of trained groups", "staleness/waiting/mean", "steps",
     "Mean steps between the end of a response and its training, one line per run."},
    {"cutoff", "Cutoff on the score", "admission/cutoff", "effective staleness",
     "The score above which a step rejects a group, one line per filtering run.", true},
};

std::string ThinningNote(const ReportView& view) {
  size_t most = 1;
  for (const RunData& run : view.runs) {
    most = std::max(most, StepsPerPoint(run.metrics, kMostPoints));
  }
  return most == 1 ? "" : Concat(" Each point is the mean of up to ", most, " steps.");
}

std::string MetricLines(const ReportView& view, const MetricChart& spec) {
  Chart chart{.figure = {.name = std::string(spec.name), .caption = std::string(spec.caption)},
              .description = std::string(spec.description),
              .y_name = std::string(spec.y_name)};
  for (size_t i = 0; i < view.runs.size(); ++i) {
    if (spec.filtering_only && view.summaries[i].kind != RunKind::kFiltered) continue;
    chart.lines.push_back({i, view.summaries[i].name,
                           MetricOverSteps(view.runs[i].metrics, spec.metric, kMostPoints)});
  }
  return RenderLines(chart);
}

// rejected / offered over the steps that a point stands for; runs of any age.
std::vector<Point> RealisedOverSteps(const MetricsTable& metrics) {
  std::vector<Point> points = MetricOverSteps(metrics, "admission/rejected", kMostPoints);
  const std::vector<Point> offered = MetricOverSteps(metrics, "admission/offered", kMostPoints);
  if (points.size() != offered.size()) return {};
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].y = offered[i].y > 0 ? points[i].y / offered[i].y : 0;
  }
  return points;
}

// What was planned beside what was done.
std::string BudgetLines(const ReportView& view) {
  Chart chart{.figure = {.name = "budget",
                         .caption = "Rejected, and the budget for it",
                         .note = "The budget is a quantile of recent scores: it does not bound "
                                 "what one step rejects."},
              .description =
                  "The share of draws each step rejected, solid, beside the share it "
                  "planned to reject, dotted, per filtering run.",
              .y_name = "share of draws"};
  const bool one_run = view.runs.size() == 1;
  for (size_t i = 0; i < view.runs.size(); ++i) {
    if (view.summaries[i].kind != RunKind::kFiltered) continue;
    const std::string& name = view.summaries[i].name;
    const MetricsTable& metrics = view.runs[i].metrics;
    std::vector<Point> budget = MetricOverSteps(metrics, "admission/budget", kMostPoints);
    RunLine rejected{i, one_run ? "rejected" : Concat(name, " rejected"),
                     RealisedOverSteps(metrics)};
    rejected.dashes = "";
    if (budget.empty()) continue;
    chart.lines.push_back(std::move(rejected));
    RunLine planned{i, one_run ? "budget" : Concat(name, " budget"), std::move(budget)};
    planned.dashes = "2 3";
    chart.lines.push_back(std::move(planned));
  }
  return RenderLines(chart);
}

std::vector<StackLayer> StalenessLayers(const RunData& run) {
  const auto layer_of = [&run](std::string name, std::string classes, std::string_view metric) {
    return StackLayer{std::move(name), std::move(classes),
                      MetricOverSteps(run.metrics, metric, kMostPoints),
                      SettledMean(run.metrics, metric).value_or(0)};
  };
  std::vector<StackLayer> layers = {
      layer_of("generation", "generation", "staleness/generation/mean"),
      layer_of("waiting in the pool", "pool", "staleness/waiting_pool/mean"),
      layer_of("waiting for the group", "assembly", "staleness/waiting_assembly/mean"),
  };
  // All three come from the same groups; a file that lacks one cannot be stacked.
  for (const StackLayer& layer : layers) {
    if (layer.points.size() != layers.front().points.size()) return {};
  }
  return layers;
}

std::string StalenessPanels(const ReportView& view) {
  std::vector<std::vector<StackLayer>> panels;
  double top = 0;
  for (const RunData& run : view.runs) {
    panels.push_back(StalenessLayers(run));
    top = std::max(top, StackTop(panels.back()));
  }
  std::string out;
  for (size_t i = 0; i < panels.size(); ++i) {
    Chart chart;
    chart.figure.name = Concat("staleness-", i);
    chart.figure.caption =
        panels.size() == 1 ? "Staleness of trained groups" : view.summaries[i].name;
    chart.description = Concat("Staleness of the groups each step of ", view.summaries[i].name,
                               " trained on, stacked: generation, waiting in the pool, waiting for "
                               "the rest of the group.");
    chart.y_name = "steps of staleness";
    chart.layers = std::move(panels[i]);
    chart.y_top = top;
    out += RenderAreas(chart);
  }
  return out;
}

}  // namespace

std::string PoolSection(const ReportView& view) {
  std::string lines;
  for (const MetricChart& spec : kMetricCharts) lines += MetricLines(view, spec);
  lines += BudgetLines(view);
  std::string content;
  if (!lines.empty()) content += Concat("<div class=\"charts large\">", lines, "</div>");
  const std::string panels = StalenessPanels(view);
  if (!panels.empty()) {
    content += Concat(
        "<h3>Where staleness accumulates</h3><p>Staleness of the groups each step "
        "trained on, in three parts that add up to their lag. ",
        view.runs.size() > 1 ? "All panels share one scale; the" : "The",
        " numbers are means.</p><div class=\"charts large\">", panels, "</div>");
  }
  if (content.empty()) return "";
  return RenderSection("pool", "The pool over time",
                       Concat("A pool that fills makes finished groups wait. A filter spends its "
                              "budget only while the pool holds more than it needs.",
                              ThinningNote(view)),
                       content);
}

}  // namespace pace
