// End-to-end runs of methods, interleaved: the time of a step and of its parts.
#ifndef PACE_BENCH_METHOD_RUNS_H_
#define PACE_BENCH_METHOD_RUNS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measurement.h"
#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"
#include "record/step_metrics.h"

namespace pace {

inline constexpr std::array<const char*, 3> kTimedMethods = {"sync", "async", "effective"};
// Of a run, while the pool fills.
inline constexpr int64_t kWarmUpSteps = 5;

// The mean of a metric over the steps after warm-up.
double MeanAfterWarmUp(const std::vector<MetricsRow>& rows, std::string_view name,
                       int64_t warm_up_steps = kWarmUpSteps);

// The default task with a benchmark's settings and then its user's. An error where a run would
// have no step after warm-up.
Result<Settings> TaskSettings(std::vector<std::string> of_the_benchmark,
                              const std::vector<std::string>& overrides, int64_t warm_up_steps);
// "overrides": [...], unless there are none.
void PutOverrides(JsonWriter& settings, std::span<const std::string> overrides);

struct TimingPlan {
  int64_t repetitions = 5;  // runs of each method
  // Where Sync's steps are long: the length of its runs, of which the first
  // kSyncWarmUpSteps warm up, since it has no pool to fill. 0 = as all runs.
  int64_t sync_steps = 0;
  int64_t warm_up_steps = kWarmUpSteps;
};
inline constexpr int64_t kSyncWarmUpSteps = 2;

struct MethodTimings {
  // By method, one repetition per run: seconds per step.
  std::map<std::string, Measurement> steps;
  // The same over the tokens of the responses that they trained: microseconds per token. What a
  // method rejects changes the number of tokens in a step.
  std::map<std::string, Measurement> tokens;
  // By method and metric, as "async/time/train": seconds or groups of a step.
  std::map<std::string, std::vector<double>> parts;
};

// Told after each run: "async, round 2 of 5: 0.52 s a step".
using RunListener = std::function<void(const std::string&)>;

// PACE over Async, per step and per trained token; the share of groups that PACE rejected; and the
// share of a step that the trainer waits for the controller itself, rescoring included. A step
// trains a fixed number of groups, so the ratio per trained prompt is the one per step.
std::vector<Measurement> OverAsync(const MethodTimings& timings, const std::string& prefix,
                                   double limit);

// Writes the 95 % intervals of the medians of PACE over Async among these: "NAME_95": [low, high].
void PutIntervals(JsonWriter& json, std::span<const Measurement> measurements);

// All methods run with `settings`, except that none scores prefixes only to record them.
// The order of methods rotates from round to round; rounds differ in their seed.
// REQUIRES: more steps than warm up
Result<MethodTimings> TimeMethods(const Settings& settings, const Policy& policy,
                                  const TimingPlan& plan, const RunListener& listener = {});

}  // namespace pace

#endif  // PACE_BENCH_METHOD_RUNS_H_
