#include "compare/results_pictures.h"

#include <algorithm>
#include <utility>

#include "compare/cell_summary.h"
#include "compare/claims.h"
#include "core/concat.h"
#include "report/axes.h"
#include "report/figure.h"
#include "report/page.h"
#include "report/svg.h"

namespace pace {
namespace {

constexpr double kPercent = 100;
constexpr int kNumTicks = 5;
constexpr double kRowHeight = 18;
constexpr size_t kKeyColumns = 3;

bool ClaimsShare(const FinishedComparison& comparison) {
  const std::vector<Claim>& claims = comparison.experiment.claims;
  return std::any_of(claims.begin(), claims.end(),
                     [](const Claim& claim) { return claim.is_recovered_share(); });
}

// The mean over seeds at each evaluation that every seed has: accuracy in percent, over updates or
// seconds.
std::vector<Point> MeanCurve(const CellTable& table, const std::string& arm, bool over_time) {
  std::vector<Point> curve;
  const std::vector<int64_t>& seeds = table.seeds();
  for (size_t i = 0;; ++i) {
    Point sum;
    for (const int64_t seed : seeds) {
      const std::vector<CellEvaluation>& evaluations = table.At(arm, seed).evaluations;
      if (i >= evaluations.size()) return curve;
      sum.x += over_time ? evaluations[i].time : static_cast<double>(evaluations[i].step);
      sum.y += kPercent * evaluations[i].accuracy;
    }
    if (seeds.empty()) return curve;
    const auto count = static_cast<double>(seeds.size());
    curve.push_back({sum.x / count, sum.y / count});
  }
}

void DrawKey(Svg& svg, double top, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const double column = static_cast<double>(i % kKeyColumns);
    const double x = 12 + column * (kChartWidth - 12) / static_cast<double>(kKeyColumns);
    const double y = top + kRowHeight * static_cast<double>(i / kKeyColumns);
    svg.Line({x, y - 4}, {x + 20, y - 4},
             {.classes = Concat("line ", RunStroke(i)), .dashes = RunDashes(i)});
    svg.Text({x + 26, y}, names[i], Anchor::kStart, "name");
  }
}

std::string DrawCurves(const CellTable& table, bool over_time) {
  std::vector<std::string> names;
  std::vector<std::vector<Point>> curves;
  double x_hi = 0;
  double y_lo = kPercent;
  double y_hi = 0;
  for (const Arm& arm : table.experiment().arms) {
    names.push_back(arm.name);
    curves.push_back(MeanCurve(table, arm.name, over_time));
    for (const Point& point : curves.back()) {
      x_hi = std::max(x_hi, point.x);
      y_lo = std::min(y_lo, point.y);
      y_hi = std::max(y_hi, point.y);
    }
  }
  Plot plot(NiceTicks(0, x_hi, kNumTicks), NiceTicks(y_lo, y_hi, kNumTicks));
  plot.MakeRoomForLabels();
  const size_t num_rows = (names.size() + kKeyColumns - 1) / kKeyColumns;
  const std::string x_name = over_time ? "seconds" : "updates";
  Svg svg(kChartWidth, kChartHeight + kRowHeight * static_cast<double>(num_rows) + 6,
          {Concat("Accuracy over ", x_name), table.experiment().title});
  DrawAxes(svg, plot, x_name, "accuracy, %");
  const Scale x = plot.XScale();
  const Scale y = plot.YScale();
  for (size_t i = 0; i < curves.size(); ++i) {
    std::vector<Point> points;
    for (const Point& point : curves[i]) points.push_back({x(point.x), y(point.y)});
    if (points.empty()) continue;
    svg.Polyline(
        points,
        {.classes = Concat("line ", RunStroke(i)), .tooltip = names[i], .dashes = RunDashes(i)});
  }
  DrawKey(svg, kChartHeight + 14, names);
  return StandalonePicture(std::move(svg).Finish());
}

struct ShareRow {
  std::string label;
  RatioInterval share;
};

// A row for each share, with its interval; 0 is one arm's, 1 the other's.
std::string DrawShares(const std::vector<ShareRow>& rows) {
  constexpr double kCharacterWidth = 7.2;
  constexpr double kPlotWidth = 430;
  double label_width = 0;
  for (const ShareRow& row : rows) {
    label_width =
        std::max(label_width, 14 + kCharacterWidth * static_cast<double>(row.label.size()));
  }
  const double width = label_width + kPlotWidth;
  double lo = 0;
  double hi = 1;
  for (const ShareRow& row : rows) {
    lo = std::min(lo, row.share.low);
    hi = std::max(hi, row.share.high);
  }
  const Ticks ticks = NiceTicks(lo, hi, kNumTicks);
  const double bottom = 14 + kRowHeight * static_cast<double>(rows.size());
  Svg svg(width, bottom + 42,
          {"Recovered share", "The share of Sync's lead over Async that a method recovers"});
  const Scale x(ticks.lo(), ticks.hi(), label_width, width - 20);
  for (const double value : ticks.values) {
    svg.Line({x(value), 8}, {x(value), bottom}, {.classes = "grid"});
    svg.Text({x(value), bottom + 17}, TickLabel(value, ticks.step), Anchor::kMiddle, "tick");
  }
  for (const double value : {0.0, 1.0}) {
    svg.Line({x(value), 8}, {x(value), bottom}, {.classes = "axis"});
  }
  svg.Text({(label_width + width) / 2, bottom + 35}, "0 = Async, 1 = Sync", Anchor::kMiddle,
           "name");
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = 14 + kRowHeight * (static_cast<double>(i) + 0.5);
    const RatioInterval& share = rows[i].share;
    const std::string tooltip =
        Concat(Fixed(share.ratio, 2), " [", Fixed(share.low, 2), ", ", Fixed(share.high, 2), "]");
    svg.Text({label_width - 8, y + 4}, rows[i].label, Anchor::kEnd, "name");
    svg.Line({x(share.low), y}, {x(share.high), y}, {.classes = "line s0", .tooltip = tooltip});
    svg.Line({x(share.ratio), y}, {x(share.ratio), y}, {.classes = "dot s0", .tooltip = tooltip});
  }
  return StandalonePicture(std::move(svg).Finish());
}

std::string MeasureName(const std::string& value) {
  if (value == "final") return "last accuracy";
  if (value == "area") return "mean over updates";
  return value;
}

}  // namespace

std::vector<ResultsPicture> ResultsPictures(const std::vector<FinishedComparison>& comparisons) {
  std::vector<ShareRow> rows;
  std::vector<ResultsPicture> curves;
  for (const FinishedComparison& comparison : comparisons) {
    if (!ClaimsShare(comparison)) continue;
    const Experiment& experiment = comparison.experiment;
    const CellTable table(experiment, comparison.cells);
    for (const Claim& claim : experiment.claims) {
      if (!claim.is_recovered_share()) continue;
      const std::optional<RatioInterval> share = Examine(table, claim).share;
      if (!share.has_value() || !share->bounded) continue;
      rows.push_back(
          {Concat(experiment.name, ", ", claim.of, ", ", MeasureName(claim.value)), *share});
    }
    const auto add = [&](std::string_view over, bool over_time) {
      curves.push_back(
          {Concat("results-", experiment.name, "-", over),
           Concat("Accuracy over ", over, " in `", experiment.name, "`, mean over seeds."),
           DrawCurves(table, over_time)});
    };
    add("updates", false);
    add("time", true);
  }
  std::vector<ResultsPicture> pictures;
  if (!rows.empty()) {
    pictures.push_back(
        {"results-recovered",
         "Share of Sync's lead over Async that a method recovers, with 95 % intervals.",
         DrawShares(rows)});
  }
  std::move(curves.begin(), curves.end(), std::back_inserter(pictures));
  return pictures;
}

std::string PicturesText(const std::vector<ResultsPicture>& pictures, const std::string& folder) {
  if (pictures.empty()) return "";
  std::string text = "## Pictures\n\n";
  for (const ResultsPicture& picture : pictures) {
    text += Concat("![", picture.caption, "](", folder, "/", picture.name, ".svg)\n\n",
                   picture.caption, "\n\n");
  }
  return text;
}

}  // namespace pace
