#include <utility>

#include "core/concat.h"
#include "report/axes.h"
#include "report/chart.h"
#include "report/group_values.h"
#include "report/sections.h"

namespace pace {
namespace {

constexpr size_t kMostPairs = 8;

std::string PairCharts(const ReportView& view, size_t light, size_t dark) {
  std::string charts;
  for (const GroupQuantity& quantity : kStalenessQuantities) {
    const bool has_scores = view.summaries[light].has_scores && view.summaries[dark].has_scores;
    if (quantity.needs_scores && !has_scores) continue;
    const NamedSample a = {light, view.summaries[light].name,
                           ValuesOf(view.runs[light], quantity, GroupsOf::kRetained)};
    const NamedSample b = {dark, view.summaries[dark].name,
                           ValuesOf(view.runs[dark], quantity, GroupsOf::kRetained)};
    Chart chart;
    chart.figure.name = Concat("trained-", light, "-", dark, "-", quantity.name);
    chart.figure.caption = quantity.caption;
    chart.x_name = quantity.axis;
    const auto mean_a = SampleMean(a.values), mean_b = SampleMean(b.values);
    if (mean_a.has_value() && mean_b.has_value()) {
      chart.figure.note = Concat("Means: ", Shortened(a.name, 24), " ", Readable(*mean_a), ", ",
                                 Shortened(b.name, 24), " ", Readable(*mean_b), ".");
    }
    chart.description = Concat(quantity.caption, " of the groups that ", a.name, " and ", b.name,
                               " trained on, as shares. ", chart.figure.note);
    charts += RenderAgainst(chart, a, b);
  }
  const std::vector<KeyEntry> key = {{.label = view.summaries[light].name,
                                      .classes = Concat("pale ", RunFill(light)),
                                      .run = light},
                                     {.label = view.summaries[dark].name,
                                      .classes = Concat("outline ", RunStroke(dark)),
                                      .shape = KeyShape::kLine,
                                      .run = dark}};
  return Concat(RenderKey(key), "<div class=\"charts\">", charts, "</div>");
}

std::string PairName(const ReportView& view, const std::pair<size_t, size_t>& pair) {
  return Concat(view.summaries[pair.first].name, " against ", view.summaries[pair.second].name);
}

}  // namespace

std::vector<std::pair<size_t, size_t>> TrainedPairs(const std::vector<RunSummary>& summaries,
                                                    size_t most) {
  std::vector<std::pair<size_t, size_t>> pairs;
  if (summaries.size() < 2) return pairs;
  // Prefer an asynchronous run without a filter; a synchronous one has no
  // staleness to compare with.
  size_t base = 0;
  for (size_t i = summaries.size(); i > 0; --i) {
    if (summaries[i - 1].kind == RunKind::kUnfiltered) base = i - 1;
  }
  const auto add = [&](size_t other) {
    if (other == base || pairs.size() == most) return;
    for (const auto& pair : pairs) {
      if (pair.second == other) return;
    }
    pairs.emplace_back(base, other);
  };
  for (size_t i = 0; i < summaries.size() && pairs.empty(); ++i) {
    if (summaries[i].method == "effective") add(i);
  }
  for (size_t i = 0; i < summaries.size(); ++i) add(i);
  return pairs;
}

std::string TrainedSection(const ReportView& view) {
  std::vector<RunSummary> with_decisions;
  std::string missing;
  for (size_t i = 0; i < view.runs.size(); ++i) {
    if (view.runs[i].has_decisions && !view.runs[i].decisions.empty()) {
      with_decisions.push_back(view.summaries[i]);
    } else {
      missing += MissingNote(Concat(view.summaries[i].name, " recorded no decisions."));
    }
  }
  std::string content;
  for (const auto& [light, dark] : TrainedPairs(with_decisions, kMostPairs)) {
    const std::pair<size_t, size_t> runs = {with_decisions[light].run, with_decisions[dark].run};
    const std::string name = Escape(PairName(view, runs));
    const std::string charts = PairCharts(view, runs.first, runs.second);
    content += content.empty()
                   ? Concat("<h3>", name, "</h3>", charts)
                   : Concat("<details><summary>", name, "</summary>", charts, "</details>");
  }
  if (content.empty()) return "";
  return RenderSection(
      "trained", "What enters training",
      "The groups that two runs trained on in their second half, as shares of each. Triangles mark "
      "the means.",
      content + missing);
}

}  // namespace pace
