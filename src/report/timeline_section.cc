#include <algorithm>
#include <array>

#include "core/concat.h"
#include "report/axes.h"
#include "report/figure.h"
#include "report/sections.h"
#include "report/series.h"
#include "report/svg.h"

namespace pace {
namespace {

constexpr size_t kMostColumns = 60;
constexpr size_t kMostRuns = 4;
constexpr double kWidth = 720, kLeft = 66, kRight = kWidth - 10;
constexpr double kLane = 34, kGap = 12, kTop = 6;

struct Part {
  std::string_view metric, name, classes;
};
// In the order in which a step goes through them: weights of the step before go
// out, the trainer waits, then it trains.
constexpr std::array<Part, 5> kParts = {{
    {"time/sync", "weight sync", "t-sync"},
    {"time/other", "other", "t-other"},
    {"time/wait_data", "waits for data", "t-wait"},
    {"time/rescore_visible", "waits for rescoring", "t-rescore"},
    {"time/train", "trains", "t-train"},
}};

// Some steps in a row.
struct Column {
  double begin = 0, end = 0;  // seconds
  int64_t first_step = 0, last_step = 0;
  std::array<double, kParts.size()> parts{};
  std::optional<double> busy;  // share of the time in which engines generate
};

std::vector<Column> ColumnsOf(const MetricsTable& metrics) {
  std::vector<Column> columns;
  const size_t stride = StepsPerPoint(metrics, kMostColumns);
  for (size_t begin = 0; begin < metrics.num_rows(); begin += stride) {
    const size_t end = std::min(metrics.num_rows(), begin + stride);
    Column column;
    double total = 0, busy = 0;
    bool has_busy = true;
    for (size_t row = begin; row < end; ++row) {
      const double seconds = std::clamp(metrics.At("time/step", row).value_or(0), 0.0, 1e12);
      for (size_t i = 0; i < kParts.size(); ++i) {
        column.parts[i] += std::clamp(metrics.At(kParts[i].metric, row).value_or(0), 0.0, 1e12);
      }
      const std::optional<double> share = metrics.At("rollout/busy", row);
      has_busy = has_busy && share.has_value();
      busy += share.value_or(0) * seconds;
      total += seconds;
    }
    if (total <= 0) continue;
    if (has_busy) column.busy = std::clamp(busy / total, 0.0, 1.0);
    column.begin = columns.empty() ? 0 : columns.back().end;
    column.end = column.begin + total;
    column.first_step = metrics.steps()[begin];
    column.last_step = metrics.steps()[end - 1];
    columns.push_back(column);
  }
  return columns;
}

std::string StepsName(const Column& column) {
  if (column.first_step == column.last_step) return Concat("step ", column.first_step);
  return Concat("steps ", column.first_step, " to ", column.last_step);
}

void DrawTrainer(Svg& svg, const Column& column, const Scale& x, double y, size_t run) {
  double sum = 0, at = column.begin;
  for (const double part : column.parts) sum += part;
  if (sum <= 0) return;
  for (size_t i = 0; i < kParts.size(); ++i) {
    if (column.parts[i] <= 0) continue;
    const double end = at + column.parts[i] * (column.end - column.begin) / sum;
    svg.Rect(x(at), y, x(end) - x(at), kLane,
             {.classes = Concat("mark ", kParts[i].classes),
              .tooltip = Concat(StepsName(column), ": ", kParts[i].name, " ",
                                Readable(column.parts[i]), " s"),
              .run = run});
    at = end;
  }
}

void DrawEngines(Svg& svg, const Column& column, const Scale& x, double y, size_t run) {
  const double height = kLane * *column.busy;
  svg.Rect(x(column.begin), y, x(column.end) - x(column.begin), kLane,
           {.classes = "idle", .tooltip = "", .run = run});
  svg.Rect(x(column.begin), y + kLane - height, x(column.end) - x(column.begin), height,
           {.classes = "mark t-engine",
            .tooltip = Concat(StepsName(column), ": engines generate ", Percent(*column.busy),
                              " of the time"),
            .run = run});
}

std::string Timeline(const ReportView& view, size_t run) {
  const std::vector<Column> columns = ColumnsOf(view.runs[run].metrics);
  if (columns.empty()) return "";
  const bool has_engines = std::all_of(columns.begin(), columns.end(),
                                       [](const Column& c) { return c.busy.has_value(); });
  const double end = columns.back().end;
  const double unit = end >= 3 * 3600 ? 3600 : end >= 300 ? 60 : 1;
  const Ticks ticks = NiceTicks(0, end / unit, 8);
  const Scale x(0, end, kLeft, kRight);
  const double bottom = kTop + (has_engines ? 2 * kLane + kGap : kLane) + 4;
  Figure figure;
  figure.name = Concat("timeline-", run);
  figure.caption = view.runs.size() == 1 ? "Who waits for whom" : view.summaries[run].name;
  figure.wide = true;
  Svg svg(kWidth, bottom + 36,
          {figure.caption,
           "What the trainer does over the time of the run, and below it the share of that time in "
           "which engines generate."});
  const double engines = kTop + kLane + kGap;
  svg.Text({4, kTop + kLane / 2 + 4}, "trainer", Anchor::kStart, "name");
  if (has_engines) svg.Text({4, engines + kLane / 2 + 4}, "engines", Anchor::kStart, "name");
  for (const Column& column : columns) {
    DrawTrainer(svg, column, x, kTop, run);
    if (has_engines) DrawEngines(svg, column, x, engines, run);
  }
  for (const double value : ticks.values) {
    const double at = x(value * unit);
    if (at > kRight + 0.5) continue;
    svg.Line({at, bottom}, {at, bottom + 4}, {.classes = "axis"});
    svg.Text({std::min(at, kRight - 8), bottom + 17}, TickLabel(value, ticks.step), Anchor::kMiddle,
             "tick");
  }
  svg.Line({kLeft, bottom}, {kRight, bottom}, {.classes = "axis"});
  const std::string name = unit == 3600 ? "hours" : unit == 60 ? "minutes" : "seconds";
  svg.Text({(kLeft + kRight) / 2, bottom + 33},
           Concat(name, view.summaries[run].is_virtual ? " of virtual time" : ""), Anchor::kMiddle,
           "name");
  for (const Part& part : kParts) {
    figure.key.push_back(
        {.label = std::string(part.name), .classes = Concat("part ", part.classes)});
  }
  if (has_engines) figure.key.push_back({.label = "engines generate", .classes = "t-engine"});
  if (columns.front().first_step != columns.front().last_step) {
    figure.note = Concat("Each column is up to ",
                         StepsPerPoint(view.runs[run].metrics, kMostColumns), " steps.");
  }
  return RenderFigure(figure, std::move(svg).Finish());
}

}  // namespace

std::string TimelineFigures(const ReportView& view) {
  std::string out;
  for (size_t i = 0; i < std::min(view.runs.size(), kMostRuns); ++i) out += Timeline(view, i);
  if (out.empty()) return "";
  out = Concat("<div class=\"charts timeline\">", out, "</div>");
  if (view.runs.size() > kMostRuns) {
    out += MissingNote(Concat("Timelines of the first ", kMostRuns, " runs."));
  }
  return out;
}

}  // namespace pace
