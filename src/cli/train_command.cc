// pace train
#include <torch/csrc/api/include/torch/version.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/open_policy.h"
#include "cli/run_directory.h"
#include "cli/run_manifest.h"
#include "cli/train_view.h"
#include "config/ignored_settings.h"
#include "config/methods.h"
#include "config/settings.h"
#include "execution/checkpoint.h"
#include "execution/curriculum.h"
#include "execution/gpu_plan.h"
#include "execution/learner_options.h"
#include "lab/lab.h"
#include "record/build_info.h"
#include "record/run_reader.h"
#include "record/run_writer.h"
#include "report/report.h"
#include "report/summary.h"
#include "runtime/runtime.h"

namespace pace {
namespace {

// What both drivers bring back.
struct Outcome {
  std::vector<MetricsRow> rows;
  std::vector<std::pair<PolicyVersion, std::vector<BenchmarkScore>>> evaluations;
  bool stopped_early = false;
  Seconds time{0};
};

int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

RecordLevel LevelOf(const Settings& settings) {
  return settings.record.Resolve(settings.run.num_steps * settings.batch.num_groups *
                                 settings.batch.group_size);
}

Result<Settings> SettingsOf(const TrainArguments& arguments) {
  if (arguments.resume.empty()) {
    if (arguments.settings.empty()) {
      return InvalidArgument("train: name a preset or a YAML file, or --resume a run");
    }
    Result<Settings> settings = LoadSettings(arguments.settings, arguments.overrides);
    if (!settings.ok() || arguments.method.empty()) return settings;
    return ApplyMethod(*settings, arguments.method, "--method");
  }
  if (!arguments.settings.empty()) {
    return InvalidArgument("--resume ", arguments.resume, ": a run goes on with its own settings");
  }
  return LoadSettings(arguments.resume + "/config.yaml", {});
}

Result<std::string> DriverOf(const TrainArguments& arguments) {
  if (arguments.resume.empty()) return arguments.driver;
  const Result<RunManifest> manifest = ReadManifest(arguments.resume);
  if (!manifest.ok()) return manifest.status();
  return manifest->driver;
}

// The method as the person typed it; a resumed run's manifest remembers.
std::string MethodTyped(const TrainArguments& arguments, const Settings& settings) {
  if (!arguments.method.empty()) return arguments.method;
  if (arguments.resume.empty()) return MethodLabel(settings);
  const Result<RunManifest> manifest = ReadManifest(arguments.resume);
  return manifest.ok() ? manifest->name : MethodLabel(settings);
}

Result<std::unique_ptr<RunWriter>> OpenWriter(const TrainArguments& arguments,
                                              const Settings& settings, const std::string& driver,
                                              const std::string& directory) {
  if (!arguments.resume.empty()) {
    const Result<LoadedCheckpoint> newest =
        LoadNewestCheckpoint(directory + "/checkpoints", [](const std::string&) {});
    if (!newest.ok()) return newest.status();
    return RunWriter::Resume(directory, LevelOf(settings), /*tensorboard=*/true,
                             newest->run.record_sizes);
  }
  Manifest manifest = ManifestOf(settings, MethodTyped(arguments, settings), driver);
  manifest.torch = TORCH_VERSION;
  if (driver != "lab") {
    manifest.start = UnixSeconds();
    manifest.machine = Concat(CpuModel(), ", ", std::thread::hardware_concurrency(), " cores");
  }
  return RunWriter::Create(directory, settings, manifest, LevelOf(settings));
}

Result<Outcome> RunDriver(const std::string& driver, const Settings& settings, const Policy& policy,
                          RunWriter* writer, const std::string& directory,
                          const TrainArguments& arguments, TrainView& view, Interrupt& interrupt) {
  const auto stop = [&interrupt, asked = false]() mutable {
    asked = asked || interrupt.Take();
    return asked;
  };
  if (driver == "lab") {
    Result<LabResult> result = RunLab(settings, policy,
                                      {.writer = writer,
                                       .checkpoints = directory + "/checkpoints",
                                       .resume = !arguments.resume.empty(),
                                       .num_threads = arguments.num_threads,
                                       .observer = &view,
                                       .stop = stop});
    if (!result.ok()) return result.status();
    return Outcome{std::move(result->rows), std::move(result->evaluations), result->stopped_early,
                   result->time};
  }
  Result<TrainingResult> result = RunTraining(settings, policy,
                                              {.writer = writer,
                                               .checkpoints = directory + "/checkpoints",
                                               .resume = !arguments.resume.empty(),
                                               .observer = &view,
                                               .stop = stop});
  if (!result.ok()) return result.status();
  return Outcome{std::move(result->rows), std::move(result->evaluations), result->stopped_early,
                 result->time};
}

Status WriteRunReport(const std::string& directory) {
  Result<RunData> run = ReadRun(directory);
  if (!run.ok()) return run.status();
  std::vector<RunData> runs;
  runs.push_back(std::move(run).value());
  return WriteReport(runs, directory + "/report.html");
}

double MeanOf(const std::vector<MetricsRow>& rows, const char* name) {
  double sum = 0;
  double count = 0;
  for (size_t i = rows.size() / 2; i < rows.size(); ++i) {
    if (const std::optional<double> value = Find(rows[i], name)) {
      sum += *value;
      count += 1;
    }
  }
  return count > 0 ? sum / count : 0;
}

// One paragraph of plain results.
void PrintSummary(const std::string& title, const std::string& driver, const Outcome& outcome,
                  const std::string& directory) {
  const size_t steps = outcome.rows.size();
  std::printf("\n%s: %zu steps in %.0f %s (%.2f s each).", title.c_str(), steps,
              outcome.time.count(), driver == "lab" ? "virtual seconds" : "s",
              steps == 0 ? 0.0 : outcome.time.count() / static_cast<double>(steps));
  if (outcome.evaluations.size() > 1) {
    for (size_t i = 0; i < outcome.evaluations.front().second.size(); ++i) {
      const BenchmarkScore& first = outcome.evaluations.front().second[i];
      const BenchmarkScore& last = outcome.evaluations.back().second[i];
      std::printf(
          " Accuracy on %s (mean@%lld over %lld problems) went from %.1f %% to %.1f %% "
          "(+- %.1f), responses from %.0f to %.0f tokens.",
          last.name.c_str(), static_cast<long long>(last.num_responses),
          static_cast<long long>(last.num_problems), 100 * first.mean, 100 * last.mean,
          100 * last.mean_half_width, first.mean_length, last.mean_length);
      if (first.call_success.has_value() && last.call_success.has_value()) {
        std::printf(" Tool calls: %.2f to %.2f a response, %.0f %% to %.0f %% of them succeed.",
                    *first.mean_calls, *last.mean_calls, 100 * *first.call_success,
                    100 * *last.call_success);
      }
    }
  }
  std::printf(
      " In the second half, trained groups had waited %.2f steps and were %.2f steps old in "
      "generation; %.0f %% of offered groups were rejected, %.0f groups waited in the "
      "pool.\nreport: %s/report.html\n",
      MeanOf(outcome.rows, "staleness/waiting/mean"),
      MeanOf(outcome.rows, "staleness/generation/mean"),
      100 * MeanOf(outcome.rows, "admission/rejected") /
          std::max(1e-9, MeanOf(outcome.rows, "admission/offered")),
      MeanOf(outcome.rows, "pool/occupancy"), directory.c_str());
}

// Whether the model's template can carry a tool's replies, and programs can be run.
Status CheckTools(const Settings& settings, const Policy& policy) {
  if (settings.tools.use == ToolUse::kNone) return Status::Ok();
  const Result<PromptRenderer> renderer = MakeRenderer(settings, policy);
  if (!renderer.ok()) return renderer.status();
  PACE_RETURN_IF_ERROR(MakeTurnRules(settings, policy, *renderer).status());
  return ToolDesk::Open(settings.tools).status();
}

// Settings that were given and that this driver does not read.
Status WarnOfIgnored(const TrainArguments& arguments, const std::string& driver, RunWriter& writer,
                     TrainView& view) {
  if (!arguments.resume.empty()) return Status::Ok();
  const std::string line =
      IgnoredSettingsLine(driver, IgnoredSettings(driver, arguments.settings, arguments.overrides));
  if (line.empty()) return Status::Ok();
  view.OnWarning(line);
  return writer.WriteWarning({.kind = WarningKind::kIgnoredSettings, .text = line});
}

Status RunTrain(const TrainArguments& arguments) {
  const Result<Settings> settings = SettingsOf(arguments);
  if (!settings.ok()) return settings.status();
  const Result<std::string> driver = DriverOf(arguments);
  if (!driver.ok()) return driver.status();
  const Result<Policy> policy = OpenPolicy(settings->policy);
  if (!policy.ok()) return policy.status();
  // What cannot be trained leaves no run directory behind.
  const Result<TrainerOptions> learning = TrainerOptionsOf(*settings);
  if (!learning.ok()) return learning.status();
  PACE_RETURN_IF_ERROR(CheckPrefixScores(*settings, /*lab=*/*driver == "lab"));
  PACE_RETURN_IF_ERROR(CheckTools(*settings, *policy));
  PACE_RETURN_IF_ERROR(PrepareGpu(*settings, policy->config));
  std::string directory = arguments.resume;
  if (directory.empty()) {
    directory = arguments.out.empty() ? FreeRunDirectory(arguments.settings) : arguments.out;
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(directory).parent_path(), ignored);
  Result<std::unique_ptr<RunWriter>> writer = OpenWriter(arguments, *settings, *driver, directory);
  if (!writer.ok()) return writer.status();
  const std::string title = MethodTitle(MethodTyped(arguments, *settings));
  std::fprintf(stderr, "%s: %s, %lld parameters, run directory %s\n", driver->c_str(),
               title.c_str(), static_cast<long long>(policy->config.num_parameters()),
               directory.c_str());
  Interrupt interrupt;
  TrainView view(directory, title, settings->run.num_steps);
  PACE_RETURN_IF_ERROR(WarnOfIgnored(arguments, *driver, **writer, view));
  const Result<Outcome> outcome =
      RunDriver(*driver, *settings, *policy, writer->get(), directory, arguments, view, interrupt);
  if (!outcome.ok()) return outcome.status();
  view.Finish(outcome->stopped_early ? LiveEnd::kStopped : LiveEnd::kFinished);
  PACE_RETURN_IF_ERROR((*writer)->Finish());
  PACE_RETURN_IF_ERROR(WriteRunReport(directory));
  PrintSummary(title, *driver, *outcome, directory);
  if (outcome->stopped_early) {
    std::fprintf(stderr,
                 settings->run.checkpoint_every > 0
                     ? "stopped early; go on with: pace train --resume %s\n"
                     : "stopped early in %s (no checkpoint: run.checkpoint_every is 0)\n",
                 directory.c_str());
  }
  return Status::Ok();
}

}  // namespace

int RunTrainCommand(const TrainArguments& arguments) {
  const Status status = RunTrain(arguments);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace pace
