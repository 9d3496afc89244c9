// pace replay
#include <cstdio>
#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "config/admission_options.h"
#include "config/settings.h"
#include "core/file.h"
#include "judge/python_policy.h"
#include "sim/recorded_verdicts.h"
#include "sim/replay.h"

namespace pace {
namespace {

struct ReplayArguments {
  std::string trace;
  std::string config;  // empty = config.yaml beside the trace
  std::string from;    // a snapshot to go on from; events only
};

// The options beside a trace are small; anything larger is another file.
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

struct ReplayConfig {
  Settings settings;
  bool whole_run = false;  // settings describe a run, not admission alone
};

Result<ReplayConfig> LoadConfig(const std::string& path) {
  ReplayConfig config;
  if (std::filesystem::path(path).extension() != ".json") {
    PACE_ASSIGN_OR_RETURN(Settings settings, LoadSettings(path, {}));
    config.settings = settings;
    config.whole_run = true;
    return config;
  }
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  PACE_ASSIGN_OR_RETURN(AdmissionOptions admission, AdmissionFromJson(text, path));
  config.settings.admission = admission;
  return config;
}

// What a run recorded of its verdicts, if the trace lies in its directory.
std::optional<RecordedVerdicts> RecordBeside(const std::string& trace) {
  const auto path = std::filesystem::path(trace).parent_path() / "decisions.jsonl";
  std::error_code error;
  if (std::filesystem::file_size(path, error) == 0 || error) return std::nullopt;
  Result<RecordedVerdicts> recorded = RecordedVerdicts::Open(path.string());
  if (!recorded.ok()) return std::nullopt;
  return std::move(recorded).value();
}

Status RunReplay(const ReplayArguments& arguments) {
  std::string config_path = arguments.config;
  if (config_path.empty()) {
    config_path = (std::filesystem::path(arguments.trace).parent_path() / "config.yaml").string();
    std::error_code ignored;
    if (!std::filesystem::exists(config_path, ignored)) {
      return NotFound(config_path, ": not there (name the options with --config FILE)");
    }
  }
  PACE_ASSIGN_OR_RETURN(const ReplayConfig config, LoadConfig(config_path));
  PACE_ASSIGN_OR_RETURN(const bool events, HoldsEvents(arguments.trace));
  if (events && !config.whole_run) {
    return InvalidArgument(config_path, ": events need the run's config.yaml, not ",
                           "admission options alone");
  }
  if (!events && !arguments.from.empty()) {
    return InvalidArgument("--from ", arguments.from, ": goes with a run's events.jsonl, ",
                           "not with a trace");
  }
  std::optional<RecordedVerdicts> recorded = RecordBeside(arguments.trace);
  const LineSink sink = [&recorded](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    if (recorded.has_value()) recorded->See(line);
  };
  const Settings& settings = config.settings;
  const auto seed = static_cast<uint64_t>(settings.run.seed);
  PolicyMaker maker;
  if (settings.admission.policy == AdmissionKind::kPython) {
    // What the run asked: the file as it is now.
    std::fprintf(stderr, "verdicts of %s, run again\n", settings.admission.python_class.c_str());
    maker = [&] {
      return OpenAdmissionPolicy(settings.admission, settings.batch.num_groups, seed);
    };
  }
  PACE_RETURN_IF_ERROR(events
                           ? ReplayEvents(arguments.trace, arguments.from, settings, sink, maker)
                           : ReplayTrace(arguments.trace, settings.admission, seed, sink, maker));
  if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
  if (recorded.has_value()) std::fprintf(stderr, "%s\n", recorded->Finish().c_str());
  return Status::Ok();
}

}  // namespace

void AddReplay(const CommandLine& line) {
  line.Add<ReplayArguments>(
      "replay", "Compute the verdicts of a recorded trace again",
      "pace replay runs/math-4b/effective/trace.jsonl",
      [](CLI::App& app, ReplayArguments& arguments) {
        app.add_option("trace", arguments.trace, "A trace, or a run's events.jsonl")->required();
        app.add_option("--config", arguments.config,
                       "JSON with the admission options, or a run's YAML (default: config.yaml "
                       "beside the trace)");
        app.add_option("--from", arguments.from,
                       "A snapshot to go on from, checkpoints/STEP.json; with events.jsonl only");
      },
      RunReplay);
}

}  // namespace pace
