#include <algorithm>
#include <cmath>
#include <utility>

#include "core/concat.h"
#include "report/accuracy.h"
#include "report/axes.h"
#include "report/chart.h"
#include "report/run_names.h"
#include "report/sections.h"
#include "report/series.h"
#include "report/table.h"

namespace pace {
namespace {

constexpr size_t kMostPoints = 320;
constexpr size_t kMostBenchmarks = 8;
constexpr size_t kMostBands = 4;  // more runs than this, and bands hide each other
constexpr size_t kMostDots = 40;
constexpr size_t kMostNameCharacters = 40;
constexpr double kNearLimit = 0.2;  // a share of the limit on lengths
constexpr size_t kMostFaint = 2;    // the same of thin lines
// Runs are smoothed to about this many points that stand on their own.
constexpr size_t kSmoothPoints = 24;

enum class Against { kSteps, kTime };

// How times of all runs are shown.
struct TimeAxis {
  double seconds = 1;  // of one unit
  std::string name;
};

TimeAxis ChooseTimeAxis(const ReportView& view) {
  double longest = 0;
  bool all_virtual = true;
  for (const RunData& run : view.runs) {
    longest = std::max(
        {longest, run.metrics.Last("time").value_or(0), run.evaluations.Last("time").value_or(0)});
    all_virtual = all_virtual && run.manifest.driver != "runtime";
  }
  TimeAxis axis{1, "seconds"};
  if (longest >= 300) axis = {60, "minutes"};
  if (longest >= 3 * 3600) axis = {3600, "hours"};
  if (longest >= 96 * 3600) axis = {86400, "days"};
  if (all_virtual) axis.name += " of virtual time";
  return axis;
}

std::vector<Point> InUnits(std::vector<Point> points, const TimeAxis& axis) {
  for (Point& point : points) point.x /= axis.seconds;
  return points;
}

struct MetricChart {
  std::string_view name, caption, metric, y_name, description;
  bool from_zero = true;
};

constexpr MetricChart kReward = {
    "reward",
    "Training reward",
    "train/reward",
    "mean reward",
    "Mean reward of the responses each step trained on, one line per run.",
    false};

constexpr MetricChart kTrainingCharts[] = {
    {"tool-success", "Tool calls that succeed", "tools/success", "share of calls",
     "Share of the tool calls of each step whose program ended without an error, per run."},
    {"tool-calls", "Tool calls", "tools/calls", "per response",
     "Mean number of tool calls of a response, one line per run."},
    {"equal-rewards", "Groups with equal rewards", "selection/equal_rewards_trained",
     "share of trained groups",
     "Share of the groups each step trained on whose members all have one reward: they teach a "
     "group-relative advantage nothing. One line per run."},
    {"length", "Response length in training", "selection/length_trained", "tokens",
     "Mean length of the responses each step trained on, one line per run, against the limit."},
    {"truncated", "Responses cut off at the limit", "selection/truncated_trained",
     "share of responses",
     "Share of the responses each step trained on that hit the length limit, one line per run."},
    {"tokens-per-second", "Generation", "rollout/tokens_per_s", "tokens per second",
     "Tokens that all engines together generated in a second of each step, one line per run."},
    {"entropy", "Entropy", "train/entropy", "nats per token",
     "Mean entropy of the policy at its tokens, one line per run."},
    {"grad-norm", "Gradient norm", "train/grad_norm", "before clipping",
     "Norm of the gradient before it is clipped, one line per run."},
    {"clip-fraction", "Clipped ratios", "train/clip_fraction", "share of tokens",
     "Share of tokens whose probability ratio was clipped, one line per run."},
    {"kl", "Drift from the sampling policy", "train/kl", "KL estimate, nats per token",
     "Mean log-probability by which the trained policy left the one that sampled, per run."},
    {"ess", "Effective sample size", "train/ess", "share of the batch",
     "Effective sample size of the importance weights, one line per run."},
};

// The number of points a smoothed one stands for; the same for all runs.
size_t SmoothingWindow(const ReportView& view) {
  size_t num_points = 0;
  for (const RunData& run : view.runs) {
    const size_t num_rows = run.metrics.num_rows();
    num_points = std::max(num_points, num_rows / StepsPerPoint(run.metrics, kMostPoints));
  }
  const size_t window = num_points / kSmoothPoints;
  return window < 2 ? 1 : window | 1;
}

// generation.max_tokens, where all runs share it and their responses come near it.
std::vector<LimitLine> LengthLimits(const ReportView& view) {
  const int64_t limit = view.runs.front().settings.generation.max_tokens;
  double longest = 0;
  for (const RunData& run : view.runs) {
    if (run.settings.generation.max_tokens != limit) return {};
    const std::vector<std::optional<double>> lengths =
        run.metrics.Column("selection/length_trained");
    for (const std::optional<double>& length : lengths) {
      longest = std::max(longest, length.value_or(0));
    }
  }
  if (longest < kNearLimit * static_cast<double>(limit)) return {};
  return {{static_cast<double>(limit), "limit"}};
}

std::string MetricLines(const ReportView& view, const MetricChart& spec, Against against,
                        const TimeAxis& axis) {
  const bool over_time = against == Against::kTime;
  const size_t window = SmoothingWindow(view);
  Chart chart{.figure = {.name = Concat(spec.name, over_time ? "-time" : ""),
                         .caption = Concat(spec.caption, over_time ? " over time" : "")},
              .description = std::string(spec.description),
              .x_name = over_time ? axis.name : "step",
              .y_name = std::string(spec.y_name),
              .from_zero = spec.from_zero};
  if (spec.name == "length") chart.limits = LengthLimits(view);
  for (size_t i = 0; i < view.runs.size(); ++i) {
    const MetricsTable& metrics = view.runs[i].metrics;
    std::vector<Point> points =
        over_time ? InUnits(MetricOverTime(metrics, spec.metric, kMostPoints), axis)
                  : MetricOverSteps(metrics, spec.metric, kMostPoints);
    RunLine line{i, view.summaries[i].name, Smoothed(points, window)};
    if (window > 1 && view.runs.size() <= kMostFaint) line.faint = std::move(points);
    chart.lines.push_back(std::move(line));
  }
  return RenderLines(chart);
}

// One benchmark, or the mean over several, in every run that has it.
struct AccuracyChart {
  std::string name;  // data-chart
  std::string caption;
  std::string caption_over_time;
  std::string y_name;
  std::vector<std::vector<BenchmarkColumns>> columns;  // per run; empty where it has none
};

RunLine AccuracyLine(const ReportView& view, size_t run, const AccuracyChart& spec, Against against,
                     const TimeAxis& axis) {
  RunLine line{run, view.summaries[run].name, {}};
  const std::vector<AccuracyPoint> points =
      Thinned(AccuracyOver(view.runs[run].evaluations, spec.columns[run]), kMostPoints);
  const bool has_band = std::any_of(points.begin(), points.end(),
                                    [](const AccuracyPoint& p) { return p.half_width > 0; });
  for (const AccuracyPoint& point : points) {
    if (against == Against::kTime && !point.time.has_value()) continue;
    const double x =
        against == Against::kTime ? *point.time / axis.seconds : static_cast<double>(point.step);
    line.points.push_back({x, 100 * point.mean});
    if (!has_band || view.runs.size() > kMostBands) continue;
    // Accuracy lies in [0, 1], and so does what can be said about it.
    line.lower.push_back(
        {x, 100 * std::max(std::min(0.0, point.mean), point.mean - point.half_width)});
    line.upper.push_back(
        {x, 100 * std::min(std::max(1.0, point.mean), point.mean + point.half_width)});
  }
  line.dots = line.points.size() <= kMostDots;
  return line;
}

std::string AccuracyLines(const ReportView& view, const AccuracyChart& spec, Against against,
                          const TimeAxis& axis) {
  const bool over_time = against == Against::kTime;
  Chart chart{.figure = {.name = Concat(spec.name, over_time ? "-time" : ""),
                         .caption = over_time ? spec.caption_over_time : spec.caption},
              .description =
                  "Share of correct responses in each evaluation, one line per run; a "
                  "band is the 95 % interval over the problems.",
              .x_name = over_time ? axis.name : "step",
              .y_name = spec.y_name,
              .from_zero = false};
  for (size_t i = 0; i < view.runs.size(); ++i) {
    chart.lines.push_back(AccuracyLine(view, i, spec, against, axis));
  }
  return RenderLines(chart);
}

std::string LengthLines(const ReportView& view,
                        const std::vector<std::vector<BenchmarkColumns>>& columns) {
  Chart chart{.figure = {.name = "length-evaluation", .caption = "Response length in evaluation"},
              .description = "Mean length of the responses of each evaluation, one line per run.",
              .y_name = "tokens"};
  for (size_t i = 0; i < view.runs.size(); ++i) {
    std::vector<BenchmarkColumns> lengths = columns[i];
    for (BenchmarkColumns& benchmark : lengths) benchmark.mean = benchmark.length;
    RunLine line{i, view.summaries[i].name, {}};
    for (const AccuracyPoint& point :
         Thinned(AccuracyOver(view.runs[i].evaluations, lengths), kMostPoints)) {
      line.points.push_back({static_cast<double>(point.step), point.mean});
    }
    line.dots = line.points.size() <= kMostDots;
    chart.lines.push_back(std::move(line));
  }
  return RenderLines(chart);
}

// Runs may differ in k.
AccuracyChart ChartOf(const std::string& benchmark,
                      const std::vector<std::vector<BenchmarkColumns>>& columns, size_t index) {
  AccuracyChart chart;
  chart.name = Concat("accuracy-", index);
  std::string k;
  for (const std::vector<BenchmarkColumns>& of_run : columns) {
    chart.columns.emplace_back();
    for (const BenchmarkColumns& candidate : of_run) {
      if (candidate.name != benchmark) continue;
      chart.columns.back().push_back(candidate);
      k = k.empty() || k == candidate.k ? candidate.k : "k";
    }
  }
  chart.caption = Shortened(benchmark, kMostNameCharacters);
  chart.caption_over_time = chart.caption + " over time";
  chart.y_name = Concat("% correct, mean@", k);
  return chart;
}

// Before and after training, benchmark by benchmark.
std::string AccuracyTable(const ReportView& view, const std::vector<AccuracyChart>& charts) {
  Table table;
  table.caption = "Accuracy before and after training, with the 95 % interval after it";
  table.corner = "run";
  for (const AccuracyChart& chart : charts) table.columns.push_back(chart.caption);
  for (size_t i = 0; i < view.runs.size(); ++i) {
    if (view.runs[i].evaluations.num_rows() == 0) continue;
    TableRow row{.head = view.summaries[i].name, .cells = {}, .run = i};
    for (const AccuracyChart& chart : charts) {
      const std::vector<AccuracyPoint> points =
          AccuracyOver(view.runs[i].evaluations, chart.columns[i]);
      if (points.empty()) {
        row.cells.emplace_back("\u2013");
        continue;
      }
      const AccuracyPoint& first = points.front();
      const AccuracyPoint& last = points.back();
      const bool has_before = first.step == 0 && points.size() > 1;
      row.cells.push_back(Concat(has_before ? AccuracyText(first.mean) : "\u2013", " \u2192 ",
                                 AccuracyText(last.mean, last.half_width)));
    }
    table.rows.push_back(std::move(row));
  }
  return RenderTable(table);
}

using ColumnsByRun = std::vector<std::vector<BenchmarkColumns>>;

// The benchmarks of all runs, and those that every run with any has: only over
// these can runs be averaged and compared.
struct BenchmarkNames {
  std::vector<std::string> all, shared;
};

bool Has(const std::vector<BenchmarkColumns>& columns, const std::string& name) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const BenchmarkColumns& other) { return other.name == name; });
}

BenchmarkNames NamesOf(const ColumnsByRun& columns) {
  BenchmarkNames names;
  for (const std::vector<BenchmarkColumns>& of_run : columns) {
    for (const BenchmarkColumns& benchmark : of_run) {
      if (std::find(names.all.begin(), names.all.end(), benchmark.name) == names.all.end()) {
        names.all.push_back(benchmark.name);
      }
    }
  }
  for (const std::string& name : names.all) {
    const bool everywhere = std::all_of(columns.begin(), columns.end(), [&](const auto& of_run) {
      return of_run.empty() || Has(of_run, name);
    });
    if (everywhere) names.shared.push_back(name);
  }
  return names;
}

// One benchmark, or the mean over several that all runs share.
AccuracyChart OverviewOf(const BenchmarkNames& names, const ColumnsByRun& columns) {
  AccuracyChart chart;
  if (names.shared.size() == 1) {
    chart = ChartOf(names.shared.front(), columns, 0);
    chart.caption = Concat("Accuracy on ", chart.caption);
  } else {
    chart.caption = Concat("Accuracy on ", names.shared.size(), " benchmarks");
    chart.y_name = "% correct, mean over benchmarks";
    for (const std::vector<BenchmarkColumns>& of_run : columns) {
      chart.columns.emplace_back();
      for (const BenchmarkColumns& benchmark : of_run) {
        const bool shared = std::find(names.shared.begin(), names.shared.end(), benchmark.name) !=
                            names.shared.end();
        if (shared) chart.columns.back().push_back(benchmark);
      }
    }
  }
  chart.name = "accuracy";
  chart.caption_over_time = "Accuracy over time";
  return chart;
}

struct AccuracyParts {
  std::string overview;  // two charts
  std::string details;   // a table, and charts by benchmark
  std::string length;
};

AccuracyParts RenderAccuracy(const ReportView& view, const TimeAxis& axis) {
  const ColumnsByRun columns = BenchmarksOfRuns(view.runs);
  const BenchmarkNames names = NamesOf(columns);
  AccuracyParts out;
  if (names.all.empty()) return out;
  const auto both = [&](const AccuracyChart& chart) {
    return AccuracyLines(view, chart, Against::kSteps, axis) +
           AccuracyLines(view, chart, Against::kTime, axis);
  };
  if (!names.shared.empty()) out.overview = both(OverviewOf(names, columns));
  out.length = LengthLines(view, columns);
  if (names.all.size() == 1) return out;
  std::vector<AccuracyChart> charts;
  for (size_t i = 0; i < std::min(names.all.size(), kMostBenchmarks); ++i) {
    charts.push_back(ChartOf(names.all[i], columns, i));
  }
  out.details = AccuracyTable(view, charts);
  if (names.all.size() > charts.size()) {
    out.details += MissingNote(Concat("Only the first ", charts.size(), " of ", names.all.size(),
                                      " benchmarks are shown."));
  }
  std::string by_benchmark;
  for (const AccuracyChart& chart : charts) by_benchmark += both(chart);
  // Runs on different tasks have nothing in common to show first.
  const bool open = out.overview.empty();
  out.details += Concat("<details", open ? " open" : "",
                        "><summary>Accuracy by benchmark</summary><div class=\"charts\">",
                        by_benchmark, "</div></details>");
  return out;
}

std::string Notes(const ReportView& view, bool has_accuracy) {
  size_t per_point = 1;
  for (const RunData& run : view.runs) {
    per_point = std::max(per_point, StepsPerPoint(run.metrics, kMostPoints));
  }
  std::string note;
  const size_t window = SmoothingWindow(view);
  if (window > 1) {
    note += Concat(" Lines of training are means over ", window * per_point, " steps");
    if (view.runs.size() <= kMostFaint) {
      note +=
          per_point == 1 ? ", thin ones show each step" : Concat(", thin ones over ", per_point);
    }
    note += ".";
  }
  if (has_accuracy && view.runs.size() <= kMostBands) {
    note += " Bands are 95 % intervals over the problems of a benchmark.";
  }
  return note;
}

}  // namespace

std::string LearningSection(const ReportView& view) {
  const TimeAxis axis = ChooseTimeAxis(view);
  const AccuracyParts accuracy = RenderAccuracy(view, axis);
  std::string training;
  const bool learns = std::any_of(view.runs.begin(), view.runs.end(), [](const RunData& run) {
    return run.metrics.Has(kReward.metric) || run.metrics.Has("train/loss");
  });
  const bool evaluates = !accuracy.overview.empty() || !accuracy.details.empty();
  if (!learns && !evaluates) return "";
  for (const MetricChart& spec : kTrainingCharts) {
    training += MetricLines(view, spec, Against::kSteps, axis);
  }
  const std::string reward = MetricLines(view, kReward, Against::kSteps, axis) +
                             MetricLines(view, kReward, Against::kTime, axis);
  return RenderSection(
      "learning", "What is learned",
      Concat("Against steps the curves show what the data is worth to the learner, against time "
             "what the whole system delivers.",
             Notes(view, evaluates)),
      Concat("<div class=\"charts large\">", accuracy.overview, reward, "</div>", accuracy.details,
             "<h3>How training goes</h3><div class=\"charts\">", accuracy.length, training,
             "</div>"));
}

}  // namespace pace
