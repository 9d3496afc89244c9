#include "report/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/concat.h"
#include "report/accuracy.h"
#include "report/axes.h"
#include "report/figure.h"
#include "report/run_names.h"
#include "report/series.h"
#include "report/table.h"

namespace pace {
namespace {

constexpr size_t kMostNameCharacters = 80;
constexpr std::string_view kNone = "\u2013";

RunKind KindOf(const Settings& settings) {
  if (settings.admission.policy != AdmissionKind::kAcceptAll) return RunKind::kFiltered;
  const bool on_policy =
      settings.supply.policy == SupplyKind::kThreshold && settings.supply.threshold == 0;
  return on_policy ? RunKind::kSync : RunKind::kUnfiltered;
}

std::optional<double> Share(std::optional<double> part, std::optional<double> whole) {
  if (!part.has_value() || !whole.has_value() || *whole <= 0) return std::nullopt;
  return *part / *whole;
}

void SummariseAccuracy(const MetricsTable& evaluations,
                       const std::vector<BenchmarkColumns>& benchmarks, RunSummary& s) {
  const std::vector<AccuracyPoint> points = AccuracyOver(evaluations, benchmarks);
  if (points.empty()) return;
  s.benchmarks = Shortened(BenchmarksName(benchmarks), kMostNameCharacters);
  for (const BenchmarkColumns& benchmark : benchmarks) s.benchmark_names.push_back(benchmark.name);
  s.accuracy_after = points.back().mean;
  s.accuracy_half_width = points.back().half_width;
  if (points.front().step == 0 && points.size() > 1) s.accuracy_before = points.front().mean;
}

RunSummary SummaryOf(const RunData& run, const std::vector<BenchmarkColumns>& benchmarks) {
  const MetricsTable& m = run.metrics;
  RunSummary s;
  s.method = MethodLabel(run.settings);
  s.title = MethodShown(run);
  s.kind = KindOf(run.settings);
  s.is_virtual = IsVirtual(run);
  s.has_scores = run.settings.admission.ComputesScores();
  s.num_steps = m.num_rows();
  s.batch = run.settings.batch.num_groups;
  s.waiting = SettledMean(m, "staleness/waiting/mean");
  s.waiting_assembly = SettledMean(m, "staleness/waiting_assembly/mean");
  s.waiting_pool = SettledMean(m, "staleness/waiting_pool/mean");
  s.generation = SettledMean(m, "staleness/generation/mean");
  s.effective = SettledMean(m, "staleness/effective/mean");
  s.lag = SettledMean(m, "staleness/lag/mean");
  s.occupancy = SettledMean(m, "pool/occupancy");
  s.rejected_share =
      Share(SettledMean(m, "admission/rejected"), SettledMean(m, "admission/offered"));
  if (s.kind == RunKind::kFiltered) s.budget = SettledMean(m, "admission/budget");
  s.step_seconds = SettledMean(m, "time/step");
  s.seconds_per_prompt = Share(s.step_seconds, static_cast<double>(s.batch));
  // Older runs of the runtime counted the modelled cluster's GPUs.
  const bool on_cpu = run.manifest.driver == "runtime" && run.manifest.device == "cpu";
  if (!on_cpu) s.gpu_seconds_per_prompt = m.Last("cost/per_trained_prompt");
  s.tokens_per_second = SettledMean(m, "rollout/tokens_per_s");
  s.equal_rewards = SettledMean(m, "selection/equal_rewards_trained");
  s.truncated = SettledMean(m, "selection/truncated_trained");
  s.tokens_generated = m.Last("cost/tokens_generated");
  if (const std::optional<double> thrown = m.Last("cost/tokens_never_trained")) {
    s.never_trained_share =
        Share(*thrown + m.Last("cost/tokens_in_pool").value_or(0), s.tokens_generated);
  }
  s.length_offered = SettledMean(m, "selection/length_offered");
  s.length_trained = SettledMean(m, "selection/length_trained");
  s.reward_offered = SettledMean(m, "selection/reward_offered");
  s.reward_trained = SettledMean(m, "selection/reward_trained");
  s.turns_offered = SettledMean(m, "selection/turns_offered");
  s.turns_trained = SettledMean(m, "selection/turns_trained");
  SummariseAccuracy(run.evaluations, benchmarks, s);
  return s;
}

// ", 80 % less than async (6.4)", or nothing without something to compare.
std::string Compared(std::optional<double> value, std::optional<double> base,
                     const std::string& base_name) {
  if (!value.has_value() || !base.has_value() || *base <= 0) return "";
  if (*value == 0) return Concat(", against ", Readable(*base), " in ", base_name);
  const double change = *value / *base - 1;
  if (std::abs(change) < 0.005) return Concat(", as in ", base_name);
  return Concat(", ", Percent(std::abs(change)), change < 0 ? " less" : " more", " than ",
                base_name, " (", Readable(*base), ")");
}

std::string SelectionSentence(const RunSummary& s) {
  std::string out;
  const std::optional<double> length = Share(s.length_trained, s.length_offered);
  if (length.has_value() && std::abs(*length - 1) >= 0.005) {
    out += Concat(" What it trains on is ", Percent(std::abs(*length - 1)),
                  *length < 1 ? " shorter" : " longer", " than what it was offered");
    if (s.reward_offered.has_value() && s.reward_trained.has_value()) {
      out += Concat(", with a mean reward of ", Readable(*s.reward_trained), " instead of ",
                    Readable(*s.reward_offered));
    }
    out += ".";
  }
  return out;
}

// " it answers 57.0 % +- 3.4 of sums correctly, 21.3 % before training."
std::string AccuracySentence(const RunSummary& s, const RunSummary* base) {
  if (!s.accuracy_after.has_value()) return "";
  std::string out = Concat(" it answers ", AccuracyText(*s.accuracy_after, s.accuracy_half_width),
                           " of ", s.benchmarks, " correctly");
  if (s.accuracy_before.has_value()) {
    out += Concat(", ", AccuracyText(*s.accuracy_before), " before training");
  }
  const bool comparable = base != nullptr && base->accuracy_after.has_value() &&
                          base->benchmark_names == s.benchmark_names;
  if (comparable) {
    out += Concat(", against ", AccuracyText(*base->accuracy_after), " in ", base->name);
  }
  return out + ".";
}

std::string SentenceOf(const RunSummary& s, const RunSummary* base) {
  std::string out = s.name + ":";
  const std::string base_name = base == nullptr ? "" : base->name;
  const auto of_base = [base](std::optional<double> RunSummary::* field) {
    return base == nullptr ? std::optional<double>() : base->*field;
  };
  if (s.num_steps == 0) return out + " no step was finished.";
  out += AccuracySentence(s, base);
  if (s.waiting.has_value()) {
    out += Concat(s.accuracy_after.has_value() ? " T" : " t", "rained groups have waited ",
                  *s.waiting == 0 ? "no" : Readable(*s.waiting), " steps",
                  Compared(s.waiting, of_base(&RunSummary::waiting), base_name), ".");
  }
  if (s.generation.has_value()) {
    out += Concat(" Their generation staleness is ",
                  *s.generation == 0 ? "zero" : Readable(*s.generation),
                  Compared(s.generation, of_base(&RunSummary::generation), base_name), ".");
  }
  if (s.step_seconds.has_value()) {
    // Runs with other batches are compared by step, but never silently.
    const bool same_batch = base == nullptr || base->batch == s.batch;
    out += Concat(" A step", same_batch ? "" : Concat(" of ", s.batch, " groups"), " takes ",
                  Readable(*s.step_seconds), s.is_virtual ? " virtual s" : " s");
    const std::optional<double> ratio = Share(s.step_seconds, of_base(&RunSummary::step_seconds));
    if (ratio.has_value() && std::abs(*ratio - 1) < 0.005) {
      out += Concat(", as long as ", base_name);
    } else if (ratio.has_value()) {
      out += Concat(", ", Readable(*ratio), " times ", base_name);
    }
    if (!same_batch) out += Concat(" with its ", base->batch, " groups");
    out += ".";
  }
  if (s.never_trained_share == 0) {
    out += " No tokens are thrown away.";
  } else if (s.never_trained_share.has_value()) {
    out += Concat(" ", Percent(*s.never_trained_share), " of its tokens are never trained on.");
  }
  if (s.rejected_share.has_value() && s.budget.has_value()) {
    out += Concat(" It rejected ", Percent(*s.rejected_share), " of what it drew, at a budget of ",
                  Percent(*s.budget), ".");
  }
  if (s.kind == RunKind::kFiltered) out += SelectionSentence(s);
  return out;
}

std::string Cell(std::optional<double> value) {
  return value.has_value() ? Readable(*value) : std::string(kNone);
}
std::string PercentCell(std::optional<double> value) {
  return value.has_value() ? Percent(*value) : std::string(kNone);
}

std::string AccuracyCell(const RunSummary& s) {
  if (!s.accuracy_after.has_value()) return std::string(kNone);
  return Concat(s.accuracy_before.has_value() ? AccuracyText(*s.accuracy_before) : "\u2013",
                " \u2192 ", AccuracyText(*s.accuracy_after));
}

}  // namespace

std::string MethodLabel(const Settings& settings) {
  const AdmissionOptions& admission = settings.admission;
  switch (admission.policy) {
    case AdmissionKind::kAcceptAll:
      return KindOf(settings) == RunKind::kSync ? "sync" : "async";
    case AdmissionKind::kStaleK:
      return Concat("stale-", admission.k);
    case AdmissionKind::kOldestToken:
      return Concat("oldest-", admission.k);
    case AdmissionKind::kStartWindow:
      return Concat("window-", admission.k);
    case AdmissionKind::kPace:
    case AdmissionKind::kPaceFair:
    case AdmissionKind::kPython:
      break;
  }
  return MethodName(admission);
}

std::vector<RunSummary> Summarize(const std::vector<RunData>& runs) {
  const std::vector<std::string> names = DisplayNames(runs);
  const std::vector<std::vector<BenchmarkColumns>> benchmarks = BenchmarksOfRuns(runs);
  std::vector<RunSummary> summaries;
  for (size_t i = 0; i < runs.size(); ++i) {
    summaries.push_back(SummaryOf(runs[i], benchmarks[i]));
    summaries.back().run = i;
    summaries.back().name = names[i];
  }
  return summaries;
}

std::optional<size_t> BaselineOf(const std::vector<RunSummary>& summaries) {
  for (const RunKind kind : {RunKind::kUnfiltered, RunKind::kSync}) {
    for (const RunSummary& summary : summaries) {
      if (summary.kind == kind) return summary.run;
    }
  }
  return std::nullopt;
}

std::vector<std::string> SummarySentences(const std::vector<RunSummary>& summaries) {
  const std::optional<size_t> baseline = BaselineOf(summaries);
  std::vector<std::string> sentences;
  for (const RunSummary& summary : summaries) {
    const bool compare = baseline.has_value() && *baseline != summary.run;
    sentences.push_back(SentenceOf(summary, compare ? &summaries[*baseline] : nullptr));
  }
  return sentences;
}

std::string SummaryTable(const std::vector<RunSummary>& summaries) {
  const std::optional<size_t> baseline = BaselineOf(summaries);
  std::optional<double> base_seconds;
  if (baseline.has_value()) base_seconds = summaries[*baseline].step_seconds;
  const bool all_virtual = std::all_of(summaries.begin(), summaries.end(),
                                       [](const RunSummary& s) { return s.is_virtual; });
  using Show = std::function<std::string(const RunSummary&)>;
  // Columns that no run can fill are left out.
  std::vector<std::pair<std::string, Show>> columns = {
      {"method",
       [](const RunSummary& s) { return s.title == s.name ? std::string(kNone) : s.title; }},
      {"steps", [](const RunSummary& s) { return Concat(s.num_steps); }},
      {"accuracy before\u00a0\u2192\u00a0after", AccuracyCell},
      {"waiting", [](const RunSummary& s) { return Cell(s.waiting); }},
      {"generation", [](const RunSummary& s) { return Cell(s.generation); }},
      {"occupancy", [](const RunSummary& s) { return Cell(s.occupancy); }},
      {"rejected", [](const RunSummary& s) { return PercentCell(s.rejected_share); }},
      {"budget", [](const RunSummary& s) { return PercentCell(s.budget); }},
      {all_virtual ? "virtual s / step" : "s / step",
       [](const RunSummary& s) { return Cell(s.step_seconds); }},
      {"relative",
       [&](const RunSummary& s) {
         const std::optional<double> relative = Share(s.step_seconds, base_seconds);
         return relative.has_value() && summaries.size() > 1 ? Concat(Readable(*relative), "\u00d7")
                                                             : std::string(kNone);
       }},
      {all_virtual ? "virtual s / prompt" : "s / prompt",
       [](const RunSummary& s) { return Cell(s.seconds_per_prompt); }},
      {all_virtual ? "virtual GPU s / prompt" : "GPU s / prompt",
       [](const RunSummary& s) { return Cell(s.gpu_seconds_per_prompt); }},
      {"tokens / s", [](const RunSummary& s) { return Cell(s.tokens_per_second); }},
      {"equal rewards", [](const RunSummary& s) { return PercentCell(s.equal_rewards); }},
      {"truncated", [](const RunSummary& s) { return PercentCell(s.truncated); }},
      {"never trained", [](const RunSummary& s) { return PercentCell(s.never_trained_share); }},
  };
  Table table;
  table.caption = "Means over the second half of each run";
  table.corner = "run";
  for (const RunSummary& s : summaries) table.rows.push_back({.head = s.name, .run = s.run});
  for (const auto& [name, show] : columns) {
    std::vector<std::string> cells;
    for (const RunSummary& s : summaries) cells.push_back(show(s));
    if (std::all_of(cells.begin(), cells.end(), [](const auto& cell) { return cell == kNone; })) {
      continue;
    }
    table.columns.push_back(name);
    for (size_t i = 0; i < cells.size(); ++i) table.rows[i].cells.push_back(std::move(cells[i]));
  }
  return RenderTable(table);
}

}  // namespace pace
