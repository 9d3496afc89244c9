#include "sim/sweep.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "config/methods.h"
#include "core/mutex.h"
#include "core/parallel.h"

namespace pace {
namespace {

constexpr int64_t kMaxRuns = 10000;
// A setting this close to the fastest counts as fast.
constexpr double kTimeTolerance = 0.02;

Result<Settings> Configure(const Settings& settings, const std::vector<std::string>& assignments) {
  Settings out = settings;
  // A method sets several keys, so it is applied first wherever it is written.
  for (const std::string& assignment : assignments) {
    if (!assignment.starts_with("method=")) continue;
    PACE_ASSIGN_OR_RETURN(out, ApplyMethod(out, assignment.substr(7)));
  }
  std::vector<std::string> overrides;
  for (const std::string& assignment : assignments) {
    if (!assignment.starts_with("method=")) overrides.push_back(assignment);
  }
  PACE_RETURN_IF_ERROR(ApplyOverrides(out, overrides));
  PACE_RETURN_IF_ERROR(out.Validate());
  return out;
}

std::vector<std::vector<std::string>> Grid(const std::vector<SweepAxis>& axes) {
  std::vector<std::vector<std::string>> points = {{}};
  for (const SweepAxis& axis : axes) {
    std::vector<std::vector<std::string>> next;
    for (const auto& point : points) {
      for (const std::string& value : axis.values) {
        next.push_back(point);
        next.back().push_back(axis.key + "=" + value);
      }
    }
    points = std::move(next);
  }
  return points;
}

bool Dominates(const SweepCost& a, const SweepCost& b) {
  const bool no_worse = a.seconds_per_prompt <= b.seconds_per_prompt && a.waiting <= b.waiting &&
                        a.wasted <= b.wasted;
  const bool better =
      a.seconds_per_prompt < b.seconds_per_prompt || a.waiting < b.waiting || a.wasted < b.wasted;
  return no_worse && better;
}

std::string Joined(const std::vector<std::string>& assignments) {
  std::string out;
  for (const std::string& assignment : assignments) {
    if (!out.empty()) out += ' ';
    out += assignment;
  }
  return out;
}

std::string Fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

std::string Advice(const SweepResult& result, size_t fastest) {
  const SweepCost best = SweepCost::Of(result.rows[result.best].totals);
  std::string out = Concat("take ", Joined(result.rows[result.best].assignments), ": ",
                           Fixed(best.seconds_per_prompt, 3),
                           " s per trained prompt, waiting staleness ", Fixed(best.waiting, 2),
                           ", ", Fixed(100 * best.wasted, 1), " % of tokens never trained");
  if (fastest == result.best) {
    return out + "; no setting is faster";
  }
  const SweepCost other = SweepCost::Of(result.rows[fastest].totals);
  const double slower = 100 * (best.seconds_per_prompt / other.seconds_per_prompt - 1);
  return Concat(out, "; the fastest, ", Joined(result.rows[fastest].assignments), ", is ",
                Fixed(slower, 1), " % faster at waiting staleness ", Fixed(other.waiting, 2),
                " and ", Fixed(100 * other.wasted, 1), " % of tokens never trained");
}

}  // namespace

Result<SweepAxis> ParseSweepAxis(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return InvalidArgument("sweep ", text, ": must be key=v1,v2,...");
  }
  SweepAxis axis{std::string(text.substr(0, equals)), {}};
  std::string_view rest = text.substr(equals + 1);
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view value = rest.substr(0, comma);
    if (value.empty()) return InvalidArgument("sweep ", text, ": a value is empty");
    axis.values.emplace_back(value);
    if (comma == std::string_view::npos) return axis;
    rest.remove_prefix(comma + 1);
  }
}

SweepCost SweepCost::Of(const SimTotals& totals) {
  return {.seconds_per_prompt = totals.time_per_trained_prompt.count(),
          .waiting = totals.mean_waiting,
          .wasted = totals.UntrainedShare()};
}

void RankRows(SweepResult& result) {
  std::vector<SweepCost> costs;
  for (const SweepRow& row : result.rows) costs.push_back(SweepCost::Of(row.totals));
  size_t fastest = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    result.rows[i].on_front = std::none_of(costs.begin(), costs.end(), [&](const SweepCost& other) {
      return Dominates(other, costs[i]);
    });
    if (costs[i].seconds_per_prompt < costs[fastest].seconds_per_prompt) fastest = i;
  }
  result.best = fastest;
  const double limit = costs[fastest].seconds_per_prompt * (1 + kTimeTolerance);
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].seconds_per_prompt <= limit && costs[i].waiting < costs[result.best].waiting) {
      result.best = i;
    }
  }
  result.advice = Advice(result, fastest);
}

Result<SweepResult> RunSweep(const Settings& settings, const std::vector<SweepAxis>& axes,
                             const SweepOptions& options) {
  double num_runs = 1;
  for (const SweepAxis& axis : axes) num_runs *= static_cast<double>(axis.values.size());
  if (!(num_runs >= 1 && num_runs <= static_cast<double>(kMaxRuns))) {
    return InvalidArgument("sweep: ", num_runs, " runs; must be between 1 and ", kMaxRuns);
  }
  SweepResult result;
  std::vector<Settings> points;
  for (auto& assignments : Grid(axes)) {
    auto configured = Configure(settings, assignments);
    if (!configured.ok()) return configured.status().At("sweep " + Joined(assignments));
    points.push_back(*std::move(configured));
    result.rows.push_back({.assignments = std::move(assignments), .totals = {}});
  }

  std::vector<std::optional<Result<SimResult>>> runs(points.size());
  Mutex mutex;
  int64_t num_done = 0;  // guarded by mutex
  ForEachInParallel(points.size(), options.num_threads, [&](size_t i) {
    runs[i] = RunSimulation(points[i], {});
    const MutexLock lock(mutex);
    ++num_done;
    if (options.progress) options.progress(num_done, static_cast<int64_t>(points.size()));
  });

  for (size_t i = 0; i < points.size(); ++i) {
    const Result<SimResult>& run = *runs[i];
    if (!run.ok()) return run.status().At("sweep " + Joined(result.rows[i].assignments));
    result.rows[i].totals = run->totals;
  }
  RankRows(result);
  return result;
}

}  // namespace pace
