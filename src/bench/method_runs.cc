#include "bench/method_runs.h"

#include "config/methods.h"
#include "runtime/runtime.h"

namespace pace {
namespace {

constexpr std::array<const char*, 6> kParts = {
    "time/train", "time/wait_data",       "time/sync",
    "time/other", "time/rescore_visible", "time/rescore_hidden"};

}  // namespace

double MeanAfterWarmUp(const std::vector<MetricsRow>& rows, std::string_view name) {
  double sum = 0;
  for (size_t i = kWarmUpSteps; i < rows.size(); ++i) sum += Find(rows[i], name).value_or(0);
  return sum / static_cast<double>(rows.size() - kWarmUpSteps);
}

Result<MethodTimings> TimeMethods(const Settings& settings, const Policy& policy,
                                  int64_t repetitions, int64_t sync_repetitions,
                                  const RunListener& listener) {
  MethodTimings out;
  for (const char* method : kTimedMethods) {
    out.steps[method] = {.name = Concat("step_", method), .unit = "s", .limit = std::nullopt};
  }
  for (int64_t round = 0; round < repetitions; ++round) {
    for (size_t i = 0; i < kTimedMethods.size(); ++i) {
      const char* method = kTimedMethods[(i + static_cast<size_t>(round)) % kTimedMethods.size()];
      if (round >= sync_repetitions && std::string_view(method) == "sync") continue;
      const Result<Settings> bundled = ApplyMethod(settings, method);
      if (!bundled.ok()) return bundled.status();
      const Result<TrainingResult> run = RunTraining(*bundled, policy, {});
      if (!run.ok()) return run.status();
      out.steps[method].repetitions.push_back(MeanAfterWarmUp(run->rows, "time/step"));
      if (listener) {
        listener(Concat(method, ", round ", round + 1, " of ", repetitions, ": ",
                        out.steps[method].repetitions.back(), " s a step"));
      }
      for (const char* part : kParts) {
        out.parts[Concat(method, "/", part)].push_back(MeanAfterWarmUp(run->rows, part));
      }
    }
  }
  return out;
}

}  // namespace pace
