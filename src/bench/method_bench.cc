// `pace bench methods`: what a method costs in time, on this machine and in the lab.
//
// End-to-end runs of the default task with one core for rollouts and one for training,
// methods interleaved: what PACE adds to Async's step and to Async's time per trained token, with
// the intervals of their medians, and how much faster Async is than Sync. Beside them the same in
// the lab, whose costs were fitted to this machine: decoding to a generation, training to the Sync
// runs. On a GPU: gpu_method_bench.cc.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>
#include <vector>

#include "bench/benches.h"
#include "bench/machine_costs.h"
#include "bench/method_runs.h"
#include "config/methods.h"
#include "lab/lab.h"
#include "runtime/affinity.h"

namespace pace {
namespace {

constexpr int64_t kNumSteps = 25;        // of a run
constexpr int64_t kMinRepetitions = 10;  // runs of each method
// The limits that this project sets itself.
constexpr double kMaxOverAsync = 1.03;
constexpr double kMaxOverAsyncInLab = 1.02;
constexpr double kMaxPredictionError = 0.15;

// A file that is removed at its end.
class ScratchFile {
 public:
  ScratchFile()
      : path_((std::filesystem::temp_directory_path() / Concat("pace-bench-", getpid(), ".jsonl"))
                  .string()) {}
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

Result<double> LabSeconds(const Settings& settings, const Policy& policy, const char* method,
                          std::string_view part) {
  PACE_ASSIGN_OR_RETURN(const Settings bundled, ApplyMethod(settings, method));
  PACE_ASSIGN_OR_RETURN(const RunResult run, RunLab(bundled, policy, {.num_threads = 2}));
  return MeanAfterWarmUp(run.rows, part);
}

}  // namespace

Status RunMethodBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  if (options.device == DeviceKind::kCuda) return RunGpuMethodBench(options, report);
  const int64_t repetitions = std::max(options.repetitions, kMinRepetitions);
  if (std::thread::hardware_concurrency() < 2) {
    return Unavailable("bench methods: needs two cores, one for rollouts and one for training");
  }
  PACE_ASSIGN_OR_RETURN(Settings settings,
                        TaskSettings({Concat("run.num_steps=", kNumSteps), "run.evaluate_every=0",
                                      "run.checkpoint_every=0", "runtime.pin_threads=true"},
                                     options.overrides, kWarmUpSteps));
  PACE_ASSIGN_OR_RETURN(const Policy policy, LoadPolicy(settings.policy));

  PACE_ASSIGN_OR_RETURN(RolloutCosts costs, [&] {
    const ScopedAffinity rollout_core(true, 0, 1);
    return MeasureRolloutCosts(settings, policy);
  }());
  PACE_ASSIGN_OR_RETURN(MethodTimings timings,
                        TimeMethods(settings, policy, {.repetitions = repetitions}));

  // In the lab, Sync computes the same updates to the bit: its training time at
  // full efficiency over the measured one is the efficiency.
  const ScratchFile table;
  Settings lab = settings;
  PACE_RETURN_IF_ERROR(ApplyCosts(costs, policy, table.path(), lab));
  lab.gpu.train_mfu = 1;
  PACE_ASSIGN_OR_RETURN(const double ideal, LabSeconds(lab, policy, "sync", "time/train"));
  const double efficiency = ideal / MedianOf(timings.parts["sync/time/train"]);
  lab.gpu.peak_tflops *= std::max(1.0, efficiency);  // a share above 1 is no share
  lab.gpu.prefill_mfu /= std::max(1.0, efficiency);
  lab.gpu.train_mfu = std::min(1.0, efficiency);
  std::map<std::string, double> predicted;
  for (const char* method : kTimedMethods) {
    PACE_ASSIGN_OR_RETURN(const double seconds, LabSeconds(lab, policy, method, "time/step"));
    predicted[method] = seconds;
  }

  const std::vector<Measurement> over_async = OverAsync(timings, "", kMaxOverAsync);
  const Measurement speedup =
      RatioOf(timings.steps["sync"], timings.steps["async"], "sync_over_async");
  const double lab_speedup = predicted["sync"] / predicted["async"];
  std::vector<Measurement>& all = report.measurements;
  for (const char* method : kTimedMethods) all.push_back(timings.steps[method]);
  for (const char* method : kTimedMethods) all.push_back(timings.tokens[method]);
  all.insert(all.end(), over_async.begin(), over_async.end());
  all.push_back(speedup);
  for (const char* method : kTimedMethods) {
    all.push_back(Known(Concat("lab_step_", method), "s", predicted[method]));
  }
  all.push_back(Known("lab_effective_over_async", "ratio",
                      predicted["effective"] / predicted["async"], kMaxOverAsyncInLab));
  all.push_back(Known("lab_sync_over_async", "ratio", lab_speedup));
  all.push_back(Known("lab_prediction_error", "share", std::abs(lab_speedup / speedup.Median() - 1),
                      kMaxPredictionError));
  JsonWriter& settings_json = report.settings();
  settings_json.Put("task", "tiny");
  settings_json.Put("steps", settings.run.num_steps);
  settings_json.Put("warm_up_steps", kWarmUpSteps);
  settings_json.Put("runs_of_each", repetitions);
  PutOverrides(settings_json, options.overrides);
  JsonWriter& json = report.more();
  PutIntervals(json, over_async);
  json.Key("rollout_costs");
  json.BeginObject();
  json.Put("pass_s", costs.pass);
  json.Put("row_s", costs.row);
  json.Put("context_token_s", costs.context_token);
  json.Put("prefill_row_s", costs.prefill_row);
  json.Put("fit_residual", costs.residual);
  json.EndObject();
  return Status::Ok();
}

}  // namespace pace
