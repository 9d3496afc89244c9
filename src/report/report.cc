#include "report/report.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/concat.h"
#include "report/figure.h"
#include "report/page.h"
#include "report/run_names.h"
#include "report/sections.h"
#include "report/summary.h"
#include "report/svg.h"

namespace pace {
namespace {

std::string Joined(const std::vector<RunSummary>& summaries) {
  std::string title;
  for (size_t i = 0; i < summaries.size(); ++i) {
    if (i > 0) title += i + 1 == summaries.size() ? " and " : ", ";
    title += summaries[i].name;
  }
  return title;
}

// "t1: PACE on list_sum"; several runs by their names.
std::string TitleOf(const std::vector<RunData>& runs, const std::vector<RunSummary>& summaries) {
  if (runs.size() > 1) return Shortened(Joined(summaries), 120);
  const RunSummary& summary = summaries.front();
  const std::string task = TaskShown(runs.front());
  std::string title = summary.name;
  if (summary.title != summary.name) title += Concat(": ", summary.title);
  if (!task.empty()) title += Concat(" on ", task);
  return Shortened(title, 120);
}

// Model, task, method, machine and date of one run.
std::string FactsOf(const RunData& run) {
  const std::pair<std::string_view, std::string> facts[] = {
      {"model", ModelShown(run)},
      {"task", TaskShown(run)},
      {"method", MethodShown(run)},
      {"machine", MachineShown(run.manifest)},
      {"began", DateShown(run.manifest)},
      {"clock", IsVirtual(run) ? "virtual: a modelled cluster\u2019s" : ""},
  };
  std::string out;
  for (const auto& [name, value] : facts) {
    if (!value.empty()) out += Concat("<li><b>", name, "</b>", Escape(value), "</li>");
  }
  return Concat("<ul class=\"facts\">", out, "</ul>");
}

// The latest of each kind, with how often it came.
std::string WarningList(const std::vector<RunData>& runs,
                        const std::vector<RunSummary>& summaries) {
  std::string items;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::array<int64_t, kNumWarningKinds> counts{};
    std::array<const RunWarning*, kNumWarningKinds> last{};
    for (const RunWarning& warning : runs[i].warnings) {
      ++counts[static_cast<size_t>(warning.kind)];
      last[static_cast<size_t>(warning.kind)] = &warning;
    }
    for (size_t kind = 0; kind < kNumWarningKinds; ++kind) {
      if (last[kind] == nullptr) continue;
      items += Concat("<li>", runs.size() > 1 ? Concat(Escape(summaries[i].name), ": ") : "",
                      Escape(Shortened(last[kind]->text, 600)), " <span class=\"note\">(step ",
                      last[kind]->step,
                      counts[kind] > 1 ? Concat(", said ", counts[kind], " times") : "",
                      ")</span></li>");
    }
  }
  if (items.empty()) return "";
  return Concat("<section class=\"warnings\" id=\"warnings\"><h2>Warnings</h2><ul>", items,
                "</ul></section>\n");
}

// ", drivers lab and sim"; empty when no run says.
std::string DriversOf(const std::vector<RunData>& runs) {
  std::vector<std::string> drivers;
  for (const RunData& run : runs) {
    const std::string& driver = run.manifest.driver;
    const bool known = std::find(drivers.begin(), drivers.end(), driver) != drivers.end();
    if (!driver.empty() && !known) drivers.push_back(driver);
  }
  std::string out;
  for (size_t i = 0; i < drivers.size(); ++i) {
    if (i == 0) out = drivers.size() == 1 ? ", driver " : ", drivers ";
    if (i > 0) out += i + 1 == drivers.size() ? " and " : ", ";
    out += drivers[i];
  }
  return out;
}

std::string ComparedSentence(const std::vector<RunData>& runs) {
  size_t num_steps = 0;
  bool same_batch = true;
  const BatchOptions& batch = runs.front().settings.batch;
  for (const RunData& run : runs) {
    num_steps = std::max(num_steps, run.metrics.num_rows());
    same_batch = same_batch && run.settings.batch.num_groups == batch.num_groups &&
                 run.settings.batch.group_size == batch.group_size;
  }
  return Concat(runs.size() == 1 ? "One run" : Concat(runs.size(), " runs side by side"),
                DriversOf(runs), ", up to ", num_steps, " steps",
                same_batch ? Concat(" of ", batch.num_groups, " groups with ", batch.group_size,
                                    " responses each.")
                           : ". Their batches differ: compare time per prompt as well.");
}

// "name: sentence" with the name set apart.
std::string SentenceItem(const RunSummary& summary, const std::string& sentence) {
  const std::string_view rest = std::string_view(sentence).substr(summary.name.size() + 1);
  return Concat("<li><b>", Escape(summary.name), "</b>:", Escape(rest), "</li>");
}

std::string Header(const std::vector<RunData>& runs, const std::vector<RunSummary>& summaries) {
  std::string out =
      Concat("<header><p class=\"kicker\">pace report</p><h1>", Escape(TitleOf(runs, summaries)),
             "</h1><p>", Escape(ComparedSentence(runs)), "</p>",
             runs.size() == 1 ? FactsOf(runs.front()) : "");
  std::vector<KeyEntry> key;
  for (const RunSummary& summary : summaries) {
    key.push_back(RunLineKey(summary.run, summary.name));
  }
  out += Concat("<div class=\"main-key\">", RenderKey(key), "</div></header>\n");
  out += WarningList(runs, summaries);
  out += "<section id=\"summary\"><h2>In short</h2><ul class=\"sentences\">";
  const std::vector<std::string> sentences = SummarySentences(summaries);
  for (size_t i = 0; i < sentences.size(); ++i) out += SentenceItem(summaries[i], sentences[i]);
  return out + "</ul>" + SummaryTable(summaries) +
         "<p class=\"note\">The first half of the steps, while the pool fills, is left out of "
         "means "
         "and distributions throughout this page; charts over steps and token totals show all of "
         "it.</p></section>\n";
}

}  // namespace

std::string RenderReport(const std::vector<RunData>& runs, const ReportOptions& options) {
  PACE_CHECK(!runs.empty() && runs.size() <= kMaxReportRuns, runs.size(), " runs");
  const std::vector<RunSummary> summaries = Summarize(runs);
  const ReportView view{runs, summaries, options.reference_step_seconds};
  std::string content = Header(runs, summaries);
  for (const auto section : {LearningSection, PoolSection, VerdictSection, TrainedSection,
                             TimeSection, ResponsesSection, SelectionSection, SettingsSection}) {
    content += section(view);
  }
  return RenderPage({.title = Concat(TitleOf(runs, summaries), " \u2013 pace report"),
                     .content = std::move(content),
                     .is_one_run = runs.size() == 1});
}

Status WriteReport(const std::vector<RunData>& runs, const std::string& path,
                   const ReportOptions& options) {
  if (runs.empty() || runs.size() > kMaxReportRuns) {
    return InvalidArgument("a report shows 1 to ", kMaxReportRuns, " runs, not ", runs.size());
  }
  return WriteFileAtomically(path, RenderReport(runs, options));
}

}  // namespace pace
