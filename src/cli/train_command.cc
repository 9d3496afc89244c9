// pace train
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/open_policy.h"
#include "cli/rank_group.h"
#include "config/ignored_settings.h"
#include "config/methods.h"
#include "config/settings.h"
#include "core/clock.h"
#include "core/concat.h"
#include "core/file.h"
#include "core/printable.h"
#include "core/utf8.h"
#include "execution/checkpoint.h"
#include "execution/learner_options.h"
#include "execution/run.h"
#include "lab/lab.h"
#include "record/build_info.h"
#include "record/run_directory.h"
#include "record/run_lock.h"
#include "record/run_reader.h"
#include "record/run_writer.h"
#include "report/report.h"
#include "report/summary.h"
#include "runtime/runtime.h"
#include "runtime/server_fleet.h"
#include "terminal/interrupt.h"
#include "terminal/live_view.h"
#include "train/trainer.h"

namespace pace {
namespace {

struct TrainArguments {
  std::string settings;
  std::vector<std::string> overrides;
  std::string method;              // a method's bundle of settings; empty = as they are
  std::string driver = "runtime";  // or lab
  std::string out;                 // empty = runs/NAME, numbered
  std::string resume;              // a run directory to go on with
  int64_t num_threads = 2;         // lab: 2 = training beside generation
  int64_t fleet = 0;               // engine.fleet, where it is given

  // The overrides, with what flags stand for.
  std::vector<std::string> AllOverrides() const {
    std::vector<std::string> all = overrides;
    if (fleet > 0) all.push_back(Concat("engine.fleet=", fleet));
    return all;
  }
};

constexpr size_t kMostNameCharacters = 60;

// A training run as the terminal shows it (live_view.h).
class TrainView final : public RunObserver {
 public:
  // `filters`: the method rejects groups, and so has a budget to show.
  TrainView(std::string run, std::string method, int64_t num_steps, bool filters)
      : view_(STDERR_FILENO) {
    status_.filters = filters;
    status_.run = std::move(run);
    status_.method = std::move(method);
    status_.num_steps = num_steps;
  }

  void OnStep(int64_t steps_done, const MetricsRow& row) override {
    if (!std::exchange(began_, true)) status_.first_step = steps_done - 1;
    status_.step = steps_done;
    status_.row = row;
    Show();
  }

  void OnEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores) override {
    for (const BenchmarkScore& score : scores) {
      std::array<char, 128> numbers{};
      std::snprintf(numbers.data(), numbers.size(), "mean@%lld %.3f +- %.3f, pass@%lld %.3f",
                    static_cast<long long>(score.num_responses), score.mean, score.mean_half_width,
                    static_cast<long long>(score.num_responses), score.pass);
      const size_t cut = OffsetOfCodePoint(score.name, kMostNameCharacters);
      view_.Note(Concat("version ", version, ": ", score.name.substr(0, cut),
                        cut < score.name.size() ? "..." : "", " ", numbers.data()));
    }
    if (scores.empty()) return;
    // The first benchmark stands for all.
    if (!status_.accuracy.has_value()) {
      status_.accuracy = LiveAccuracy{.benchmark = scores.front().name, .start = {}, .now = 0};
      if (version.step() == 0) status_.accuracy->start = scores.front().mean;
    }
    status_.accuracy->now = scores.front().mean;
    status_.accuracy->version = version.step();
    Show();
  }

  void OnPulse(const RunPulse& pulse) override {
    status_.waits_for = pulse.waiting;
    status_.tokens_per_s = pulse.tokens_per_second;
    status_.occupancy = pulse.occupancy;
    Show();
  }

  void OnCheckpoint(const std::string& folder) override { view_.Note("saved " + folder); }
  void OnWarning(const std::string& text) override { view_.Note("warning: " + text); }
  void OnNote(const std::string& note) override { view_.Note(note); }
  void Finish(LiveEnd end) { view_.Finish(end); }

 private:
  void Show() {
    status_.elapsed = clock_.Now();
    view_.Update(status_);
  }

  const WallClock clock_;
  LiveView view_;
  LiveStatus status_;
  bool began_ = false;
};

// What `--resume DIR key=value ...` continues with. A run keeps its settings, except for a
// few: its length, its checkpoints, its records. The checkpoint holds the settings that it was
// made with, so that a changed config.yaml is noticed as well as an override.
struct ResumePlan {
  Settings settings = {};
  std::string driver = {};
  RecordLevel level = RecordLevel::kMetrics;
  bool settings_changed = false;  // config.yaml is to be rewritten
  // Where the run continues; none: it has no checkpoint and starts again.
  std::optional<LoadedCheckpoint> checkpoint = {};
  std::vector<std::string> notes = {};  // for whoever resumes it, a line each
};

// A name that ends in a dot stands for its whole section. docs/training.md lists them.
constexpr auto kMayChange = std::to_array<std::string_view>({"run.num_steps",
                                                             "run.checkpoint_every",
                                                             "run.evaluate_every",
                                                             "checkpoint.",
                                                             "evaluation.",
                                                             "record.",
                                                             "runtime.",
                                                             "tools.url",
                                                             "tools.python",
                                                             "engine.count",
                                                             "engine.threads",
                                                             "engine.urls",
                                                             "engine.fleet",
                                                             "engine.requests",
                                                             "engine.server",
                                                             "engine.token_file",
                                                             "engine.ca_file",
                                                             "engine.weights",
                                                             "engine.transfer",
                                                             "engine.transfer_mib",
                                                             "engine.transfer_address",
                                                             "engine.transfer_port",
                                                             "engine.join_s",
                                                             "engine.generate_s",
                                                             "engine.load_s",
                                                             "engine.control_s"});

std::map<std::string, std::string> ValuesOf(Settings& settings) {
  std::map<std::string, std::string> values;
  for (const Section& section : settings.Sections()) {
    for (const Field& field : section.fields) {
      values.emplace(section.name + "." + field.key(), field.Get());
    }
  }
  return values;
}

Result<RecordLevel> LevelOf(const Settings& settings, const std::string& recorded) {
  if (settings.record.level != RecordLevel::kAuto) return settings.record.level;
  if (recorded == "metrics") return RecordLevel::kMetrics;
  if (recorded == "decisions") return RecordLevel::kDecisions;
  if (recorded == "full") return RecordLevel::kFull;
  return DataLoss("manifest.json: record = ", Printable(recorded),
                  ": must be metrics, decisions or full");
}

std::string VersionNote(const std::string& version, const std::string& commit,
                        const std::string& folder) {
  if (version == PaceVersion() && commit == PaceCommit()) return "";
  return Concat(folder, " was written by pace ", version, " (", commit, "); this is pace ",
                PaceVersion(), " (", PaceCommit(), ")");
}

// Whether a resumed run may have another value of this key.
bool MayChangeOnResume(std::string_view key) {
  return std::ranges::any_of(kMayChange, [key](std::string_view allowed) {
    return allowed.back() == '.' ? key.starts_with(allowed) : key == allowed;
  });
}

// An error names the first setting that differs and may not. `place` is the source of the
// earlier settings.
Status CheckResumedSettings(Settings before, Settings now, const std::string& place) {
  const std::map<std::string, std::string> earlier = ValuesOf(before);
  for (const auto& [key, value] : ValuesOf(now)) {
    if (value == earlier.at(key) || MayChangeOnResume(key)) continue;
    return InvalidArgument(key, " = ", Printable(value), ": a run keeps its settings, and ", place,
                           " has ", Printable(earlier.at(key)),
                           " (docs/training.md lists what may change)");
  }
  return Status::Ok();
}

// Removes what an interrupted save left, and changes nothing else. REQUIRES: the caller
// holds the run's lock
Result<ResumePlan> PlanResume(const std::string& directory,
                              const std::vector<std::string>& overrides) {
  PACE_ASSIGN_OR_RETURN(const RunManifest manifest, ReadManifest(directory));
  if (manifest.driver != "lab" && manifest.driver != "runtime") {
    return InvalidArgument("--resume ", directory, ": is a run of ", Printable(manifest.driver),
                           ", not of pace train");
  }
  ResumePlan plan;
  plan.driver = manifest.driver;
  const std::string config = directory + "/config.yaml";
  PACE_ASSIGN_OR_RETURN(const Settings before, LoadSettings(config, {}));
  PACE_ASSIGN_OR_RETURN(plan.settings, LoadSettings(config, overrides));
  plan.settings_changed = ToYaml(plan.settings) != ToYaml(before);
  PACE_RETURN_IF_ERROR(CheckResumedSettings(before, plan.settings, config));
  Result<RecordLevel> level = LevelOf(plan.settings, manifest.record);
  if (!level.ok()) return level.status().At(directory);
  plan.level = *level;

  const std::string checkpoints = directory + "/checkpoints";
  RemovePartialCheckpoints(checkpoints);
  const bool repeats = plan.driver == "lab" && before.run.checkpoint_every > 0;
  PACE_ASSIGN_OR_RETURN(
      plan.checkpoint,
      FindCheckpoint(checkpoints, repeats ? ResumeFrom::kNewestScheduled : ResumeFrom::kNewest,
                     [&plan](std::string note) { plan.notes.push_back(std::move(note)); }));
  if (!plan.checkpoint.has_value()) {
    plan.notes.push_back(directory + ": no checkpoint to go on from, so the run begins again");
    return plan;
  }
  const LoadedCheckpoint& checkpoint = *plan.checkpoint;
  const RunCheckpoint& run = checkpoint.run;
  if (!run.settings.empty()) {
    const std::string place = checkpoint.folder + "/settings.yaml";
    Settings saved;
    PACE_RETURN_IF_ERROR(ApplyYaml(saved, run.settings, place));
    PACE_RETURN_IF_ERROR(CheckResumedSettings(saved, plan.settings, place));
  }
  if (plan.driver == "lab" && run.coordinator.stop_requested) {
    plan.notes.push_back(Concat(checkpoint.folder, ": a stop asked for it, so the records from ",
                                "here on differ from those of a run never stopped"));
  }
  if (plan.settings.run.num_steps < run.step.step()) {
    return InvalidArgument("run.num_steps = ", plan.settings.run.num_steps, ": ", checkpoint.folder,
                           " has done more");
  }
  const std::string note = run.version.empty()
                               ? VersionNote(manifest.version, manifest.commit, directory)
                               : VersionNote(run.version, run.commit, checkpoint.folder);
  if (!note.empty()) plan.notes.push_back(note);
  return plan;
}

// A run that is about to begin or to go on.
struct Plan {
  Settings settings = {};
  std::string driver = {};
  std::string directory = {};
  std::unique_ptr<RunLock> lock = {};
  std::optional<ResumePlan> resume = {};  // settings and driver are moved out

  bool goes_on() const { return resume.has_value() && resume->checkpoint.has_value(); }
  std::string checkpoints() const { return directory + "/checkpoints"; }
};

int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Status TakeLock(Plan& plan) {
  PACE_ASSIGN_OR_RETURN(RunLock lock, RunLock::Take(plan.directory));
  plan.lock = std::make_unique<RunLock>(std::move(lock));
  return Status::Ok();
}

Result<Plan> PlanNewRun(const TrainArguments& arguments, const RankGroup& group) {
  if (arguments.settings.empty()) {
    return InvalidArgument("train: name a preset or a YAML file, or --resume a run");
  }
  Result<Settings> settings = LoadSettings(arguments.settings, arguments.AllOverrides());
  if (settings.ok() && !arguments.method.empty()) {
    settings = ApplyMethod(*settings, arguments.method, "--method");
  }
  if (!settings.ok()) return settings.status();
  if (group.may_be_restarted() && arguments.out.empty()) {
    return InvalidArgument("--out: must name the run directory where the launcher may restart the ",
                           "run, so that it finds what it began");
  }
  Plan plan;
  plan.settings = std::move(settings).value();
  plan.driver = arguments.driver;
  plan.directory = arguments.out.empty() ? FreeRunDirectory(arguments.settings) : arguments.out;
  PACE_RETURN_IF_ERROR(CheckNewRunDirectory(plan.directory));
  return plan;
}

Result<Plan> PlanResumedRun(const TrainArguments& arguments) {
  std::vector<std::string> overrides = arguments.AllOverrides();
  if (!arguments.settings.empty()) {
    if (arguments.settings.find('=') == std::string::npos) {
      return InvalidArgument("--resume ", arguments.resume,
                             ": a run goes on with its own settings");
    }
    overrides.insert(overrides.begin(), arguments.settings);
  }
  if (!arguments.method.empty() || !arguments.out.empty()) {
    return InvalidArgument("--resume ", arguments.resume,
                           ": a run keeps its method and its directory");
  }
  Plan plan;
  plan.directory = arguments.resume;
  PACE_RETURN_IF_ERROR(ReadManifest(plan.directory).status());
  PACE_RETURN_IF_ERROR(TakeLock(plan));
  PACE_ASSIGN_OR_RETURN(ResumePlan resume, PlanResume(plan.directory, overrides));
  plan.settings = std::move(resume.settings);
  plan.driver = std::move(resume.driver);
  plan.resume.emplace(std::move(resume));
  return plan;
}

// A launcher that restarts the ranks repeats the command, which then goes on with its run.
Result<Plan> PlanRun(const TrainArguments& arguments, const RankGroup& group) {
  if (!arguments.resume.empty()) return PlanResumedRun(arguments);
  if (group.restarted() && !arguments.out.empty() && ReadManifest(arguments.out).ok()) {
    TrainArguments again;
    again.resume = arguments.out;
    return PlanResumedRun(again);
  }
  return PlanNewRun(arguments, group);
}

// The method as the person typed it; the manifest of a resumed run remembers it.
std::string MethodTyped(const TrainArguments& arguments, const Plan& plan) {
  if (!arguments.method.empty()) return arguments.method;
  if (!plan.resume.has_value()) return MethodLabel(plan.settings);
  const Result<RunManifest> manifest = ReadManifest(plan.directory);
  return manifest.ok() ? manifest->name : MethodLabel(plan.settings);
}

// From here on the run has a directory.
Result<std::unique_ptr<RunWriter>> OpenWriter(const TrainArguments& arguments, Plan& plan) {
  const Settings& settings = plan.settings;
  if (plan.resume.has_value()) {
    const ResumePlan& resume = *plan.resume;
    if (resume.settings_changed) {
      PACE_RETURN_IF_ERROR(RewriteConfig(plan.directory, settings));
    }
    return RunWriter::Resume(
        plan.directory, resume.level, /*tensorboard=*/true,
        plan.goes_on() ? resume.checkpoint->run.record_sizes : std::map<std::string, int64_t>());
  }
  PACE_RETURN_IF_ERROR(CreateFolders(plan.directory));
  PACE_RETURN_IF_ERROR(TakeLock(plan));
  Manifest manifest = ManifestOf(settings, MethodTyped(arguments, plan), plan.driver);
  manifest.torch = Trainer::TorchVersion();
  if (plan.driver != "lab") {
    manifest.start = UnixSeconds();
    const std::string cpu = CpuModel();
    manifest.machine = Concat(cpu == "unknown" ? "" : Concat(cpu, ", "),
                              std::thread::hardware_concurrency(), " cores");
  }
  const RecordLevel level = settings.record.Resolve(
      settings.run.num_steps * settings.batch.num_groups * settings.batch.group_size);
  return RunWriter::Create(plan.directory, settings, manifest, level);
}

Result<RunResult> RunPlan(Plan& plan, const Policy& policy, RunSetup setup, TrainView& view,
                          const StopSignals& signals) {
  setup.checkpoints = plan.checkpoints();
  setup.resume = plan.goes_on();
  setup.loaded = plan.goes_on() ? &*plan.resume->checkpoint : nullptr;
  setup.observer = &view;
  setup.stop = [&signals, &view, asked = false]() mutable {
    if (asked || signals.signal() == 0) return asked;
    asked = true;
    view.OnNote(signals.name() +
                ": saving after the update under way, then ending; another one ends it at once");
    return true;
  };
  const auto run = plan.driver == "lab" ? RunLab : RunTraining;
  return run(plan.settings, policy, setup);
}

Status WriteRunReport(const std::string& directory) {
  PACE_ASSIGN_OR_RETURN(RunData run, ReadRun(directory));
  std::vector<RunData> runs;
  runs.push_back(std::move(run));
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

// One paragraph of plain results, and where they are.
void PrintSummary(const Plan& plan, const std::string& title, const RunResult& outcome) {
  const auto steps = static_cast<long long>(outcome.steps_done);
  std::printf("\n%s: %lld steps in %.0f %s (%.2f s each)", title.c_str(), steps,
              outcome.time.count(), plan.driver == "lab" ? "virtual seconds" : "s",
              steps == 0 ? 0.0 : outcome.time.count() / static_cast<double>(steps));
  if (plan.goes_on()) std::printf(", %zu of them since it was resumed", outcome.rows.size());
  std::printf(".");
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
      MeanOf(outcome.rows, "pool/occupancy"), plan.directory.c_str());
  const std::string model = NewestCheckpointFolder(plan.checkpoints());
  if (!model.empty()) std::printf("model: %s\n", model.c_str());
}

// Finds what is wrong before anything is made, so that a mistake leaves no run directory,
// and acquires what the run needs of this machine.
Result<RunResources> CheckBeforehand(const Plan& plan, const Policy& policy,
                                     const GpuShare& share) {
  PACE_RETURN_IF_ERROR(CheckRun(plan.settings, policy));
  PACE_RETURN_IF_ERROR(CheckPrefixScores(plan.settings, /*lab=*/plan.driver == "lab"));
  if (plan.driver == "lab") {
    PACE_RETURN_IF_ERROR(CheckLabSettings(plan.settings));
  } else {
    PACE_RETURN_IF_ERROR(CheckServers(plan.settings));
  }
  return RunResources::Acquire(plan.settings, policy, share);
}

// Settings that were given and that this driver does not read.
Status WarnOfIgnored(const TrainArguments& arguments, const std::string& driver, RunWriter& writer,
                     TrainView& view) {
  if (!arguments.resume.empty()) return Status::Ok();
  const std::string line = IgnoredSettingsLine(
      driver, IgnoredSettings(driver, arguments.settings, arguments.AllOverrides()));
  if (line.empty()) return Status::Ok();
  view.OnWarning(line);
  return writer.WriteWarning({.kind = WarningKind::kIgnoredSettings, .text = line});
}

// Settings that are valid, but with which runs have lost what they had learned.
Status WarnOfRoundedRollouts(const Settings& settings, RunWriter& writer, TrainView& view) {
  if (settings.engine.quantization == EngineQuantization::kNone ||
      settings.train.reference == RatioReference::kProximal) {
    return Status::Ok();
  }
  const std::string line =
      "engine.quantization = fp8 with train.ratio = rollout: Sync has lost what it had learned "
      "that "
      "way (set train.ratio=recomputed; docs/rollout.md)";
  view.OnWarning(line);
  return writer.WriteWarning({.kind = WarningKind::kRoundedRollouts, .text = line});
}

Result<int> LeadTrain(const TrainArguments& arguments, RankGroup& group) {
  PACE_ASSIGN_OR_RETURN(Plan plan, PlanRun(arguments, group));
  const Settings& settings = plan.settings;
  PACE_ASSIGN_OR_RETURN(const Policy policy, OpenPolicy(settings.policy));
  PACE_ASSIGN_OR_RETURN(RunResources resources, CheckBeforehand(plan, policy, group.gpu_share()));
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<RunWriter> writer, OpenWriter(arguments, plan));
  if (plan.resume.has_value()) {
    for (const std::string& note : plan.resume->notes) std::fprintf(stderr, "%s\n", note.c_str());
  }
  const std::string title = MethodTitle(MethodTyped(arguments, plan));
  std::fprintf(stderr, "%s: %s, %lld parameters,%s run directory %s\n", plan.driver.c_str(),
               title.c_str(), static_cast<long long>(policy.config.num_parameters()),
               group.size() > 1 ? Concat(" ", group.size(), " ranks,").c_str() : "",
               plan.directory.c_str());
  PACE_RETURN_IF_ERROR(group.Begin(settings, policy));
  const StopSignals signals;
  TrainView view(plan.directory, title, settings.run.num_steps,
                 settings.admission.policy != AdmissionKind::kAcceptAll);
  PACE_RETURN_IF_ERROR(WarnOfIgnored(arguments, plan.driver, *writer, view));
  if (!plan.resume.has_value()) {
    PACE_RETURN_IF_ERROR(WarnOfRoundedRollouts(settings, *writer, view));
  }
  const Result<RunResult> outcome = RunPlan(plan, policy,
                                            {.writer = writer.get(),
                                             .ranks = group.ranks(),
                                             .resources = std::move(resources),
                                             .num_threads = arguments.num_threads},
                                            view, signals);
  view.Finish(outcome.ok() && !outcome->stopped_early ? LiveEnd::kFinished : LiveEnd::kStopped);
  const Status finished = writer->Finish();
  const Status status = outcome.ok() ? finished : outcome.status();
  if (!status.ok()) {
    std::fprintf(stderr, "once that is mended, go on with: pace train --resume %s\n",
                 plan.directory.c_str());
    return status;
  }
  PACE_RETURN_IF_ERROR(WriteRunReport(plan.directory));
  PrintSummary(plan, title, *outcome);
  if (!outcome->stopped_early) return 0;
  std::fprintf(stderr,
               "stopped by %s after step %lld of %lld; go on with: pace train --resume %s\n",
               signals.name().c_str(), static_cast<long long>(outcome->steps_done),
               static_cast<long long>(settings.run.num_steps), plan.directory.c_str());
  return StopSignals::kExitCode;
}

Result<int> RunTrain(const TrainArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<RankGroup> group, RankGroup::Join());
  if (!group->leads()) return group->End(group->Follow());
  return group->End(LeadTrain(arguments, *group));
}

}  // namespace

void AddTrain(const CommandLine& line) {
  line.Add<TrainArguments>(
      kTrainCommand.name, kTrainCommand.what,
      "pace train tiny\n"
      "  pace train tiny --method async run.num_steps=40\n"
      "  pace train tiny --driver lab\n"
      "  pace train tiny --fleet 2\n"
      "  torchrun --no-python --nproc-per-node 2 pace train tiny train.shard=gradients\n"
      "  pace train --resume runs/tiny run.num_steps=160",
      [](CLI::App& app, TrainArguments& arguments) {
        app.add_option("settings", arguments.settings, kSettingsHelp);
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option("--method", arguments.method,
                       Concat("A method's settings: ", MethodNames()));
        app.add_option("--driver", arguments.driver,
                       "runtime = this machine's clock; lab = the cluster model's, to the bit")
            ->check(CLI::IsMember({"runtime", "lab"}))
            ->capture_default_str();
        app.add_option(
               "--fleet", arguments.fleet,
               "Generate on this many `pace serve` processes, which the run starts and ends")
            ->check(CLI::Range(1, 64));
        app.add_option("--out", arguments.out, "The run directory (default: runs/NAME)");
        app.add_option("--resume", arguments.resume,
                       "A run directory to go on with; then key=value, as run.num_steps=60");
        app.add_option("--threads", arguments.num_threads,
                       "lab: 2 = training is computed beside generation")
            ->check(CLI::Range(1, 2))
            ->capture_default_str();
      },
      RunTrain);
}

}  // namespace pace
