#include <algorithm>

#include "core/concat.h"
#include "report/sections.h"
#include "report/svg.h"
#include "report/table.h"

namespace pace {
namespace {

// "cpu, 2 threads, torch 2.13.0", as far as the run says; simulations do not.
std::string MachineOf(const RunManifest& manifest) {
  std::string out = manifest.device;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (manifest.threads > 0) {
    add(Concat(manifest.threads, manifest.threads == 1 ? " thread" : " threads"));
  }
  if (!manifest.torch.empty()) add(Concat("torch ", manifest.torch));
  if (!manifest.determinism.empty()) add(manifest.determinism);
  return out;
}

std::string OriginTable(const ReportView& view) {
  Table table;
  table.caption = "Where the runs come from";
  table.corner = "run";
  table.columns = {"driver", "seed", "batch", "group size", "threshold", "pace", "recorded"};
  const bool any_machine = std::any_of(view.runs.begin(), view.runs.end(), [](const RunData& run) {
    return !MachineOf(run.manifest).empty();
  });
  if (any_machine) table.columns.emplace_back("machine");
  for (size_t i = 0; i < view.runs.size(); ++i) {
    const RunManifest& manifest = view.runs[i].manifest;
    const Settings& settings = view.runs[i].settings;
    table.rows.push_back(
        {.head = view.summaries[i].name,
         .cells = {manifest.driver, Concat(manifest.seed), Concat(settings.batch.num_groups),
                   Concat(settings.batch.group_size), Concat(settings.supply.threshold),
                   Concat(manifest.version, " ", manifest.commit), manifest.record},
         .run = i});
    if (any_machine) {
      const std::string machine = MachineOf(manifest);
      table.rows.back().cells.push_back(machine.empty() ? "\u2013" : machine);
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

std::string RenderSection(std::string_view id, std::string_view heading,
                          std::string_view introduction, const std::string& content) {
  return Concat("<section id=\"", id, "\"><h2>", heading, "</h2><p>", introduction, "</p>", content,
                "</section>\n");
}

std::string MissingNote(std::string_view text) {
  return Concat("<p class=\"missing\">", Escape(text), "</p>");
}

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
  return RenderSection("settings", "The runs",
                       "Everything needed to run them again: each run directory holds its "
                       "resolved settings, and the same settings and seed give the same run.",
                       content);
}

}  // namespace pace
