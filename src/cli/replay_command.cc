// pace replay
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/commands.h"
#include "config/admission_json.h"
#include "config/settings.h"
#include "sim/replay.h"

namespace pace {
namespace {

// The options beside a trace are small; anything larger is another file.
constexpr std::streamsize kMaxConfigBytes = 1 << 20;

struct ReplayConfig {
  Settings settings;
  bool whole_run = false;  // settings describe a run, not admission alone
};

Result<ReplayConfig> LoadConfig(const std::string& path) {
  ReplayConfig config;
  if (std::filesystem::path(path).extension() != ".json") {
    Result<Settings> settings = LoadSettings(path, {});
    if (!settings.ok()) return settings.status();
    config.settings = *settings;
    config.whole_run = true;
    return config;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path, ": cannot be read");
  std::string text(static_cast<size_t>(kMaxConfigBytes) + 1, '\0');
  file.read(text.data(), kMaxConfigBytes + 1);
  if (file.gcount() > kMaxConfigBytes) {
    return InvalidArgument(path, ": larger than ", kMaxConfigBytes, " bytes");
  }
  text.resize(static_cast<size_t>(file.gcount()));
  Result<AdmissionOptions> admission = AdmissionFromJson(text, path);
  if (!admission.ok()) return admission.status();
  config.settings.admission = *admission;
  return config;
}

}  // namespace

int RunReplayCommand(const ReplayArguments& arguments) {
  std::string config_path = arguments.config;
  if (config_path.empty()) {
    config_path = (std::filesystem::path(arguments.trace).parent_path() / "config.yaml").string();
    if (!std::filesystem::exists(config_path)) {
      return Fail(NotFound(config_path, ": not there (name the options with --config FILE)"));
    }
  }
  const Result<ReplayConfig> config = LoadConfig(config_path);
  if (!config.ok()) return Fail(config.status());
  const Result<bool> events = HoldsEvents(arguments.trace);
  if (!events.ok()) return Fail(events.status());
  if (*events && !config->whole_run) {
    return Fail(InvalidArgument(config_path, ": events need the run's config.yaml, not ",
                                "admission options alone"));
  }
  if (!*events && !arguments.from.empty()) {
    return Fail(InvalidArgument("--from ", arguments.from, ": goes with a run's events.jsonl, ",
                                "not with a trace"));
  }
  const LineSink sink = [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
  };
  const Settings& settings = config->settings;
  const Status status = *events ? ReplayEvents(arguments.trace, arguments.from, settings, sink)
                                : ReplayTrace(arguments.trace, settings.admission,
                                              static_cast<uint64_t>(settings.run.seed), sink);
  if (!status.ok()) return Fail(status);
  if (std::fflush(stdout) != 0) return Fail(Unavailable("stdout: cannot be written"));
  return 0;
}

}  // namespace pace
