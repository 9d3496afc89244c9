#include "bench/method_runs.h"

#include <utility>

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

Result<Settings> TaskSettings(std::vector<std::string> of_the_benchmark,
                              const std::vector<std::string>& overrides, int64_t warm_up_steps) {
  of_the_benchmark.insert(of_the_benchmark.end(), overrides.begin(), overrides.end());
  PACE_ASSIGN_OR_RETURN(Settings settings, LoadSettings("tiny", of_the_benchmark));
  if (settings.run.num_steps <= warm_up_steps) {
    return InvalidArgument("run.num_steps = ", settings.run.num_steps, ": must be above ",
                           warm_up_steps, ", the steps that warm up");
  }
  return settings;
}

void PutOverrides(JsonWriter& settings, std::span<const std::string> overrides) {
  if (!overrides.empty()) PutArray(settings, "overrides", overrides);
}

std::vector<Measurement> OverAsync(const MethodTimings& timings, const std::string& prefix,
                                   double limit) {
  const auto ratio = [&](const std::map<std::string, Measurement>& times, const char* name) {
    return RatioOf(times.at("effective"), times.at("async"), prefix + name, limit);
  };
  Measurement rejected{.name = prefix + "effective_rejected", .unit = "share"};
  const std::vector<double>& offered = timings.parts.at("effective/admission/offered");
  for (size_t i = 0; i < offered.size(); ++i) {
    const double count = timings.parts.at("effective/admission/rejected")[i];
    rejected.Add(offered[i] > 0 ? count / offered[i] : 0);
  }
  Measurement own{.name = prefix + "effective_own_share", .unit = "share"};
  const std::vector<double>& steps = timings.steps.at("effective").repetitions;
  for (size_t i = 0; i < steps.size(); ++i) {
    own.Add((timings.parts.at("effective/time/rescore_visible")[i] +
             timings.parts.at("effective/time/other")[i]) /
            steps[i]);
  }
  return {ratio(timings.steps, "effective_over_async"),
          ratio(timings.tokens, "effective_over_async_per_token"), std::move(rejected),
          std::move(own)};
}

void PutIntervals(JsonWriter& json, std::span<const Measurement> measurements) {
  for (const Measurement& measured : measurements) {
    if (measured.name.find("effective_over_async") == std::string::npos) continue;
    const auto [low, high] = MedianIntervalOf(measured.repetitions);
    PutArray(json, measured.name + "_95", std::array{low, high});
  }
}

Result<MethodTimings> TimeMethods(const Settings& settings, const Policy& policy,
                                  const TimingPlan& plan, const RunListener& listener) {
  MethodTimings out;
  for (const char* method : kTimedMethods) {
    out.steps[method] = {.name = Concat("step_", method), .unit = "s"};
    out.tokens[method] = {.name = Concat("trained_token_", method), .unit = "us"};
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
      PACE_ASSIGN_OR_RETURN(const RunResult run, RunTraining(bundled, policy, {}));
      const auto mean = [&](const char* name) {
        return MeanAfterWarmUp(run.rows, name, is_short ? kSyncWarmUpSteps : plan.warm_up_steps);
      };
      out.steps[method].Add(mean("time/step"));
      const auto num_responses =
          static_cast<double>(bundled.batch.num_groups * bundled.batch.group_size);
      out.tokens[method].Add(1e6 * mean("time/step") /
                             (mean("selection/length_trained") * num_responses));
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
