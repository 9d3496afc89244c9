#include <array>

#include "core/concat.h"
#include "report/axes.h"
#include "report/chart.h"
#include "report/group_values.h"
#include "report/sections.h"

namespace pace {
namespace {

std::string VerdictCharts(const ReportView& view, size_t run) {
  const RunData& data = view.runs[run];
  const std::string& name = view.summaries[run].name;
  std::string charts;
  size_t num_unscored = 0;
  for (const GroupQuantity& quantity : kStalenessQuantities) {
    if (quantity.needs_scores && !view.summaries[run].has_scores) continue;
    const Sample retained = ValuesOf(data, quantity, GroupsOf::kRetained);
    const Sample rejected = ValuesOf(data, quantity, GroupsOf::kRejected);
    Chart chart;
    chart.figure.name = Concat("verdicts-", run, "-", quantity.name);
    chart.figure.caption = quantity.caption;
    chart.x_name = quantity.axis;
    chart.description = Concat(quantity.caption, " of the groups drawn by ", name, ": ",
                               retained.size(), " retained, ", rejected.size(), " rejected.");
    if (quantity.name == "prefix") {
      num_unscored = ValuesOf(data, kStalenessQuantities[0], GroupsOf::kAll).size() -
                     retained.size() - rejected.size();
      chart.figure.note =
          num_unscored == 0 ? "" : Concat(num_unscored, " groups have no prefix score.");
    }
    charts += RenderVerdicts(chart, run, retained, rejected);
  }
  if (charts.empty()) return "";
  const std::vector<KeyEntry> key = {{.label = "retained", .classes = RunFill(run)},
                                     {.label = "rejected", .classes = "rejected"}};
  return Concat(RenderKey(key), "<div class=\"charts\">", charts, "</div>");
}

}  // namespace

std::string VerdictSection(const ReportView& view) {
  std::string content;
  for (size_t i = 0; i < view.runs.size(); ++i) {
    if (view.summaries[i].kind != RunKind::kFiltered) continue;
    const std::string heading =
        view.runs.size() == 1 ? "" : Concat("<h3>", Escape(view.summaries[i].name), "</h3>");
    if (view.runs[i].has_decisions) {
      const std::string charts = VerdictCharts(view, i);
      if (!charts.empty()) content += heading + charts;
    } else if (view.runs[i].metrics.num_rows() > 0) {
      content += heading + MissingNote(
                               "This run recorded no decisions. Set record.level to "
                               "decisions to see them here.");
    }
  }
  if (content.empty()) return "";
  return RenderSection(
      "verdicts", "What the filter keeps",
      "All groups drawn in the second half of the run, by what the filter made of them. "
      "Rejected groups stand on top of retained ones.",
      content);
}

}  // namespace pace
