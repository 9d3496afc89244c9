#include <utility>

#include "core/concat.h"
#include "report/axes.h"
#include "report/line_chart.h"
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
    {"budget", "Rejection budget", "admission/budget", "share of draws",
     "The share of draws each step planned to reject, one line per filtering run.", true},
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
  LineChart chart;
  chart.figure.name = spec.name;
  chart.figure.caption = spec.caption;
  chart.description = spec.description;
  chart.y_name = spec.y_name;
  for (size_t i = 0; i < view.runs.size(); ++i) {
    if (spec.filtering_only && view.summaries[i].kind != RunKind::kFiltered) continue;
    chart.lines.push_back({i, view.summaries[i].name,
                           MetricOverSteps(view.runs[i].metrics, spec.metric, kMostPoints)});
  }
  return RenderLineChart(chart);
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
    StackedAreas chart;
    chart.figure.name = Concat("staleness-", i);
    chart.figure.caption = view.summaries[i].name;
    chart.description = Concat("Staleness of the groups each step of ", view.summaries[i].name,
                               " trained on, stacked: generation, waiting in the pool, waiting for "
                               "the rest of the group.");
    chart.y_name = "steps of staleness";
    chart.layers = std::move(panels[i]);
    chart.y_top = top;
    out += RenderStackedAreas(chart);
  }
  return out;
}

}  // namespace

std::string PoolSection(const ReportView& view) {
  std::string lines;
  for (const MetricChart& spec : kMetricCharts) lines += MetricLines(view, spec);
  std::string content;
  if (!lines.empty()) content += Concat("<div class=\"charts\">", lines, "</div>");
  const std::string panels = StalenessPanels(view);
  if (!panels.empty()) {
    content += Concat(
        "<h3>Where staleness accumulates</h3><p>Staleness of the groups each step "
        "trained on, in three parts that add up to their lag. All panels share one "
        "scale; the numbers are means.</p><div class=\"charts\">",
        panels, "</div>");
  }
  if (content.empty()) content = MissingNote("No run has metrics to draw.");
  return RenderSection("pool", "The pool over time",
                       Concat("A pool that fills makes finished groups wait. A filter spends its "
                              "budget only while the pool holds more than it needs.",
                              ThinningNote(view)),
                       content);
}

}  // namespace pace
