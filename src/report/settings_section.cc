#include <algorithm>
#include <functional>
#include <utility>

#include "core/concat.h"
#include "report/run_names.h"
#include "report/sections.h"
#include "report/svg.h"
#include "report/table.h"

namespace pace {
namespace {

// What running it again gives, in words.
std::string AgainShown(const RunData& run) {
  if (IsReproducible(run)) return "the same run";
  if (run.manifest.determinism.empty()) return "";
  return run.manifest.determinism == "responses" ? "another timing, so another run" : "another run";
}

std::string OriginTable(const ReportView& view) {
  using Show = std::function<std::string(const RunData&)>;
  // Columns that no run can fill are left out.
  const std::vector<std::pair<std::string, Show>> columns = {
      {"method", MethodShown},
      {"model", ModelShown},
      {"task", TaskShown},
      {"driver", [](const RunData& run) { return run.manifest.driver; }},
      {"seed", [](const RunData& run) { return Concat(run.manifest.seed); }},
      {"batch", [](const RunData& run) { return Concat(run.settings.batch.num_groups); }},
      {"group size", [](const RunData& run) { return Concat(run.settings.batch.group_size); }},
      {"threshold", [](const RunData& run) { return Concat(run.settings.supply.threshold); }},
      {"pace",
       [](const RunData& run) { return Concat(run.manifest.version, " ", run.manifest.commit); }},
      {"recorded", [](const RunData& run) { return run.manifest.record; }},
      {"machine", [](const RunData& run) { return MachineShown(run.manifest); }},
      {"began", [](const RunData& run) { return DateShown(run.manifest); }},
      {"run again", AgainShown},
      {"folder", [](const RunData& run) { return run.directory; }},
  };
  Table table;
  table.caption = "Where the runs come from";
  table.corner = "run";
  for (size_t i = 0; i < view.runs.size(); ++i) {
    table.rows.push_back({.head = view.summaries[i].name, .run = i});
  }
  for (const auto& [name, show] : columns) {
    std::vector<std::string> cells;
    for (const RunData& run : view.runs) cells.push_back(show(run));
    if (std::all_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.empty(); })) {
      continue;
    }
    table.columns.push_back(name);
    for (size_t i = 0; i < cells.size(); ++i) {
      table.rows[i].cells.push_back(cells[i].empty() ? "\u2013" : std::move(cells[i]));
    }
  }
  return RenderTable(table);
}

// Keys whose values are not the same in all runs.
std::string DifferenceTable(const ReportView& view) {
  Table table;
  table.caption = "Settings that differ";
  table.corner = "key";
  std::vector<Settings> copies;
  for (size_t i = 0; i < view.runs.size(); ++i) {
    table.columns.push_back(view.summaries[i].name);
    copies.push_back(view.runs[i].settings);
  }
  std::vector<std::vector<Section>> sections;
  for (Settings& settings : copies) sections.push_back(settings.Sections());
  for (size_t s = 0; s < sections.front().size(); ++s) {
    for (size_t f = 0; f < sections.front()[s].fields.size(); ++f) {
      TableRow row;
      row.head = Concat(sections.front()[s].name, ".", sections.front()[s].fields[f].key());
      bool differs = false;
      for (const std::vector<Section>& of_run : sections) {
        row.cells.push_back(of_run[s].fields[f].Get());
        differs = differs || row.cells.back() != row.cells.front();
      }
      if (differs) table.rows.push_back(std::move(row));
    }
  }
  return table.rows.empty() ? "" : RenderTable(table);
}

}  // namespace

std::string SettingsSection(const ReportView& view) {
  std::string content = OriginTable(view);
  if (view.runs.size() > 1) content += DifferenceTable(view);
  for (size_t i = 0; i < view.runs.size(); ++i) {
    for (const std::string& note : view.runs[i].notes) {
      content += MissingNote(Concat(view.summaries[i].name, ": ", note));
    }
  }
  for (size_t i = 0; i < view.runs.size(); ++i) {
    content += Concat("<details><summary>All settings of ", Escape(view.summaries[i].name),
                      "</summary><pre>");
    // Lines stay lines; Escape would join them.
    const std::string yaml = ToYaml(view.runs[i].settings);
    for (size_t begin = 0; begin < yaml.size();) {
      const size_t end = std::min(yaml.find('\n', begin), yaml.size());
      content += Escape(std::string_view(yaml).substr(begin, end - begin)) + "\n";
      begin = end + 1;
    }
    content += "</pre></details>";
  }
  const bool same_again = std::all_of(view.runs.begin(), view.runs.end(), IsReproducible);
  return RenderSection(
      "settings", view.runs.size() == 1 ? "The run" : "The runs",
      Concat("Each run directory holds its resolved settings.",
             same_again ? " The same settings and seed give the same run."
                        : " Under the wall clock the same settings and seed give another run: "
                          "timing decides which policy version samples which token."),
      content);
}

}  // namespace pace
