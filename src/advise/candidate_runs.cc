#include "advise/candidate_runs.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "core/mutex.h"
#include "core/parallel.h"
#include "sim/simulation.h"

namespace pace {
namespace {

constexpr double kStepTolerance = 0.02;
constexpr double kLagTolerance = 0.05;
constexpr double kSmallLagChange = 0.1;  // versions

double ValueOf(const MetricsRow& row, const char* name) {
  return Find(row, name).value_or(0);
}

double LagOf(const MetricsRow& row) {
  return ValueOf(row, "staleness/waiting/mean") + ValueOf(row, "staleness/generation/mean");
}

struct QuarterMeans {
  double step_seconds = 0;
  double lag = 0;
};

// Of quarter 0 to 3, averaged over the runs.
QuarterMeans MeansOf(std::span<const std::vector<MetricsRow>> runs, size_t quarter) {
  QuarterMeans sum;
  double count = 0;
  for (const std::vector<MetricsRow>& rows : runs) {
    for (size_t i = rows.size() * quarter / 4; i < rows.size() * (quarter + 1) / 4; ++i) {
      sum.step_seconds += ValueOf(rows[i], "time/step");
      sum.lag += LagOf(rows[i]);
      ++count;
    }
  }
  return {sum.step_seconds / count, sum.lag / count};
}

}  // namespace

SeedResult SecondHalf(std::span<const MetricsRow> rows, int64_t num_responses) {
  PACE_CHECK(rows.size() >= 4, rows.size(), " steps have no quarters");
  const size_t begin = rows.size() / 2;
  double seconds = 0, length = 0, idle = 0, lag = 0;
  for (const MetricsRow& row : rows.subspan(begin)) {
    seconds += ValueOf(row, "time/step");
    idle += ValueOf(row, "time/wait_data") + ValueOf(row, "time/rescore_visible");
    length += ValueOf(row, "selection/length_trained");
    lag += LagOf(row);
  }
  const auto count = static_cast<double>(rows.size() - begin);
  const double num_tokens = length * static_cast<double>(num_responses);
  const auto since_half = [&](const char* name) {
    return ValueOf(rows.back(), name) - ValueOf(rows[begin - 1], name);
  };
  const double generated = since_half("cost/tokens_generated");
  return {.step_seconds = seconds / count,
          .token_seconds = num_tokens > 0 ? seconds / num_tokens : 0,
          .lag = lag / count,
          .wasted = generated > 0 ? since_half("cost/tokens_never_trained") / generated : 0,
          .trainer_idle = seconds > 0 ? idle / seconds : 0};
}

bool HasSettled(std::span<const std::vector<MetricsRow>> runs) {
  const QuarterMeans third = MeansOf(runs, 2), last = MeansOf(runs, 3);
  const double largest_lag = std::max(third.lag, last.lag);
  return std::abs(third.step_seconds - last.step_seconds) <=
             kStepTolerance * std::max(third.step_seconds, last.step_seconds) &&
         std::abs(third.lag - last.lag) <= std::max(kSmallLagChange, kLagTolerance * largest_lag);
}

Result<std::vector<CandidateRuns>> MeasureCandidates(const Settings& settings,
                                                     const std::vector<Candidate>& candidates,
                                                     const MeasureOptions& options) {
  PACE_CHECK(options.num_seeds >= 1 && options.first_steps >= 4, "nothing to simulate");
  std::vector<CandidateRuns> out;
  std::vector<Settings> configured;
  for (const Candidate& candidate : candidates) {
    auto applied = ApplyCandidate(settings, candidate);
    if (!applied.ok()) return applied.status().At(std::string(candidate.title));
    out.push_back(
        {.candidate = candidate, .overrides = OverridesBetween(settings, *applied), .seeds = {}});
    configured.push_back(*std::move(applied));
  }

  const auto num_seeds = static_cast<size_t>(options.num_seeds);
  const int64_t num_responses = settings.batch.num_groups * settings.batch.group_size;
  const size_t num_tasks = out.size() * num_seeds;
  Mutex mutex;
  int64_t num_done = 0, num_known = 0;  // num_done is guarded by mutex
  for (int64_t steps = options.first_steps;; steps = std::min(2 * steps, options.max_steps)) {
    std::vector<std::optional<Result<SimResult>>> results(num_tasks);
    num_known += static_cast<int64_t>(num_tasks);
    ForEachInParallel(num_tasks, options.num_threads, [&](size_t task) {
      Settings run = configured[task / num_seeds];
      run.run.seed += static_cast<int64_t>(task % num_seeds);
      run.run.num_steps = steps;
      results[task] = RunSimulation(run, {});
      const MutexLock lock(mutex);
      ++num_done;
      if (options.progress) options.progress(num_done, num_known);
    });

    bool all_settled = true;
    for (size_t i = 0; i < out.size(); ++i) {
      std::vector<std::vector<MetricsRow>> rows;
      out[i].seeds.clear();
      for (size_t seed = 0; seed < num_seeds; ++seed) {
        Result<SimResult>& result = *results[i * num_seeds + seed];
        if (!result.ok()) return result.status().At(std::string(out[i].candidate.title));
        rows.push_back(std::move(result->rows));
        out[i].seeds.push_back(SecondHalf(rows.back(), num_responses));
      }
      out[i].num_steps = steps;
      out[i].settled = HasSettled(rows);
      all_settled = all_settled && out[i].settled;
    }
    if (all_settled || steps >= options.max_steps) return out;
  }
}

}  // namespace pace
