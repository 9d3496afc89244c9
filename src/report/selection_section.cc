#include <algorithm>

#include "core/concat.h"
#include "report/axes.h"
#include "report/chart.h"
#include "report/group_values.h"
#include "report/sections.h"
#include "report/table.h"

namespace pace {
namespace {

std::string FromTo(std::optional<double> from, std::optional<double> to) {
  if (!from.has_value() || !to.has_value()) return "\u2013";
  std::string out = Concat(Readable(*from), " \u2192 ", Readable(*to));
  if (*from > 0) out += Concat(" (", Readable(*to / *from), "\u00d7)");
  return out;
}

// Distances of each payload quantity, where decisions allow.
std::string DistanceCell(const RunData& run, const GroupQuantity& quantity) {
  if (!run.has_decisions) return "\u2013";
  const auto distance = KolmogorovSmirnov(ValuesOf(run, quantity, GroupsOf::kAll),
                                          ValuesOf(run, quantity, GroupsOf::kRetained));
  return distance.has_value() ? Readable(distance->distance) : "\u2013";
}

std::string CostTable(const ReportView& view) {
  Table table;
  table.caption = "Offered to training and trained: tokens of the whole run, means per group";
  table.corner = "run";
  table.columns = {
      "tokens generated", "never trained", "length", "KS", "reward", "KS", "turns", "KS"};
  for (size_t i = 0; i < view.runs.size(); ++i) {
    const RunSummary& s = view.summaries[i];
    const RunData& run = view.runs[i];
    table.rows.push_back(
        {.head = s.name,
         .cells =
             {s.tokens_generated.has_value() ? Readable(*s.tokens_generated) : "\u2013",
              s.never_trained_share.has_value() ? Percent(*s.never_trained_share) : "\u2013",
              FromTo(s.length_offered, s.length_trained), DistanceCell(run, kPayloadQuantities[0]),
              FromTo(s.reward_offered, s.reward_trained), DistanceCell(run, kPayloadQuantities[1]),
              FromTo(s.turns_offered, s.turns_trained), DistanceCell(run, kPayloadQuantities[2])},
         .run = i});
  }
  return RenderTable(table);
}

bool Varies(const Sample& sample) {
  for (const float value : sample) {
    if (value != sample.front()) return true;
  }
  return false;
}

std::string SelectionCharts(const ReportView& view, size_t run) {
  std::string charts;
  for (const GroupQuantity& quantity : kPayloadQuantities) {
    const Sample offered = ValuesOf(view.runs[run], quantity, GroupsOf::kAll);
    const Sample trained = ValuesOf(view.runs[run], quantity, GroupsOf::kRetained);
    if (!Varies(offered)) continue;  // single-turn runs have nothing to show for turns
    const auto distance = KolmogorovSmirnov(offered, trained);
    if (!distance.has_value()) continue;
    Chart chart;
    chart.figure.name = Concat("selection-", run, "-", quantity.name);
    chart.figure.caption = quantity.caption;
    chart.figure.note = Concat("Largest distance (KS) ", Readable(distance->distance), ", at ",
                               Readable(distance->at), ".");
    chart.x_name = quantity.axis;
    chart.description =
        Concat("Cumulative distribution of ", quantity.caption, " over the groups offered to ",
               view.summaries[run].name, " and those it trained on. ", chart.figure.note);
    charts += RenderSelection(chart, run, offered, trained);
  }
  if (charts.empty()) return "";
  const std::vector<KeyEntry> key = {
      {.label = "offered", .classes = "offered", .shape = KeyShape::kLine, .dashes = "4 3"},
      {.label = "trained", .classes = RunStroke(run), .shape = KeyShape::kLine, .run = run}};
  const std::string heading =
      view.runs.size() == 1 ? "" : Concat("<h3>", Escape(view.summaries[run].name), "</h3>");
  return Concat(heading, RenderKey(key), "<div class=\"charts\">", charts, "</div>");
}

}  // namespace

std::string SelectionSection(const ReportView& view) {
  const bool any_filter = std::any_of(
      view.summaries.begin(), view.summaries.end(),
      [](const RunSummary& s) { return s.kind == RunKind::kFiltered && s.num_steps > 0; });
  if (!any_filter) return "";
  std::string content = CostTable(view);
  for (size_t i = 0; i < view.runs.size(); ++i) {
    if (view.summaries[i].kind != RunKind::kFiltered) continue;
    content += view.runs[i].has_decisions
                   ? SelectionCharts(view, i)
                   : MissingNote(Concat(view.summaries[i].name,
                                        " recorded no decisions: distances are not known."));
  }
  return RenderSection(
      "selection", "What the filter costs and how it selects",
      "A filter throws away tokens, and what it keeps need not look like what it was offered: "
      "stale groups tend to be long and hard. The KS distance between offered and trained groups "
      "is 0 when they are alike and 1 when they share nothing.",
      content);
}

}  // namespace pace
