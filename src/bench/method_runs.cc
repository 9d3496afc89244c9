#include "bench/method_runs.h"

#include "config/methods.h"
#include "core/check.h"
#include "runtime/runtime.h"

namespace pace {
namespace {

constexpr std::array<const char*, 8> kParts = {
    "time/train",           "time/wait_data",      "time/sync",         "time/other",
    "time/rescore_visible", "time/rescore_hidden", "admission/offered", "admission/rejected"};

}  // namespace

double MeanAfterWarmUp(const std::vector<MetricsRow>& rows, std::string_view name,
                       int64_t warm_up_steps) {
  PACE_CHECK(std::ssize(rows) > warm_up_steps, rows.size(), " steps");
  double sum = 0;
  for (auto row = rows.begin() + warm_up_steps; row != rows.end(); ++row) {
    sum += Find(*row, name).value_or(0);
  }
  return sum / static_cast<double>(std::ssize(rows) - warm_up_steps);
}

Result<MethodTimings> TimeMethods(const Settings& settings, const Policy& policy,
                                  const TimingPlan& plan, const RunListener& listener) {
  MethodTimings out;
  for (const char* method : kTimedMethods) {
    out.steps[method] = {.name = Concat("step_", method), .unit = "s"};
  }
  for (int64_t round = 0; round < plan.repetitions; ++round) {
    for (size_t i = 0; i < kTimedMethods.size(); ++i) {
      const char* method = kTimedMethods[(i + static_cast<size_t>(round)) % kTimedMethods.size()];
      PACE_ASSIGN_OR_RETURN(Settings bundled, ApplyMethod(settings, method));
      // What only looks at others' scores is not part of a method.
      bundled.admission.observe = false;
      bundled.run.seed = settings.run.seed + round;
      const bool is_short = plan.sync_steps > 0 && std::string_view(method) == "sync";
      if (is_short) bundled.run.num_steps = plan.sync_steps;
      PACE_ASSIGN_OR_RETURN(const TrainingResult run, RunTraining(bundled, policy, {}));
      const auto mean = [&](const char* name) {
        return MeanAfterWarmUp(run.rows, name, is_short ? kSyncWarmUpSteps : kWarmUpSteps);
      };
      out.steps[method].Add(mean("time/step"));
      for (const char* part : kParts) out.parts[Concat(method, "/", part)].push_back(mean(part));
      if (listener) {
        listener(Concat(method, ", round ", round + 1, " of ", plan.repetitions, ": ",
                        out.steps[method].repetitions.back(), " s a step"));
      }
    }
  }
  return out;
}

}  // namespace pace
