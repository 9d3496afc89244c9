// Replay and reports.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <utility>

#include "bind/convert.h"
#include "config/admission_options.h"
#include "config/settings.h"
#include "core/file.h"
#include "record/run_reader.h"
#include "report/report.h"
#include "sim/replay.h"

namespace pace::python {
namespace {

using namespace nb::literals;

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// As `pace replay` does: JSON holds admission options, anything else the settings of a run.
Status Replay(const std::string& trace, const std::string& config, const std::string& snapshot,
              std::vector<std::string>& lines) {
  const LineSink sink = [&lines](std::string_view line) {
    lines.emplace_back(line.substr(0, line.size() - 1));
  };
  const bool is_json = std::filesystem::path(config).extension() == ".json";
  Settings settings;
  if (is_json) {
    PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(config, kMaxConfigBytes));
    PACE_ASSIGN_OR_RETURN(settings.admission, AdmissionFromJson(text, config));
  } else {
    PACE_ASSIGN_OR_RETURN(settings, LoadSettings(config, {}));
  }
  PACE_ASSIGN_OR_RETURN(const bool events, HoldsEvents(trace));
  if (events && is_json) {
    return InvalidArgument(config, ": events need the run's config.yaml, not admission options");
  }
  if (!events && !snapshot.empty()) {
    return InvalidArgument(snapshot, ": a snapshot goes with events.jsonl, not with a trace");
  }
  if (events) return ReplayEvents(trace, snapshot, settings, sink);
  return ReplayTrace(trace, settings.admission, static_cast<uint64_t>(settings.run.seed), sink);
}

}  // namespace

void BindRecords(nb::module_& module) {
  module.def(
      "replay_lines",
      [](const std::string& trace, const std::string& config, const std::string& snapshot) {
        std::vector<std::string> lines;
        Status status;
        {
          const nb::gil_scoped_release no_gil;
          status = Replay(trace, config, snapshot, lines);
        }
        Check(status);
        return lines;
      },
      "trace"_a, "config"_a, "snapshot"_a = "");
  module.def(
      "write_report",
      [](const std::vector<std::string>& directories, const std::string& path) {
        if (directories.empty() || directories.size() > kMaxReportRuns) {
          Refuse("report: ", directories.size(), " runs; must be from 1 to ", kMaxReportRuns);
        }
        const nb::gil_scoped_release no_gil;
        std::vector<RunData> runs;
        for (const std::string& directory : directories) {
          runs.push_back(Take(ReadRun(directory)));
        }
        Check(WriteReport(runs, path));
      },
      "runs"_a, "path"_a);
}

}  // namespace pace::python
