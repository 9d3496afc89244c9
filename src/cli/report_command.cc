// pace report
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "cli/command.h"
#include "record/run_reader.h"
#include "report/report.h"

namespace pace {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;  // empty = report.html in the first run, or beside the runs
};

bool HoldsRun(const std::filesystem::path& directory) {
  std::error_code ignored;  // ReadRun says what is wrong
  return std::filesystem::exists(directory / "manifest.json", ignored);
}

// The run itself, or the runs directly inside, by name.
std::vector<std::string> FindRuns(const std::string& argument) {
  std::vector<std::string> found;
  std::error_code ignored;
  if (!HoldsRun(argument) && std::filesystem::is_directory(argument, ignored)) {
    for (const auto& entry : std::filesystem::directory_iterator(argument, ignored)) {
      if (HoldsRun(entry.path())) found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
  }
  if (found.empty()) found.push_back(argument);
  return found;
}

Status RunReport(const ReportArguments& arguments) {
  std::vector<RunData> runs;
  for (const std::string& argument : arguments.runs) {
    for (const std::string& directory : FindRuns(argument)) {
      PACE_ASSIGN_OR_RETURN(RunData run, ReadRun(directory));
      for (const std::string& note : run.notes) std::fprintf(stderr, "pace: %s\n", note.c_str());
      runs.push_back(std::move(run));
    }
  }
  if (runs.size() > kMaxReportRuns) {
    return InvalidArgument("report: ", runs.size(), " runs: must be at most ", kMaxReportRuns,
                           " (a page with more cannot be read)");
  }
  const std::string out =
      arguments.out.empty()
          ? (std::filesystem::path(arguments.runs.front()) / "report.html").string()
          : arguments.out;
  PACE_RETURN_IF_ERROR(WriteReport(runs, out));
  std::printf("%s\n", out.c_str());
  return Status::Ok();
}

}  // namespace

void AddReport(const CommandLine& line) {
  line.Add<ReportArguments>(
      "report", "Draw runs side by side on one HTML page",
      "pace report runs/a runs/b --out report.html",
      [](CLI::App& app, ReportArguments& arguments) {
        app.add_option("runs", arguments.runs, "Run directories, or directories that hold runs")
            ->required();
        app.add_option("--out", arguments.out, "The page (default: report.html in the first)");
      },
      RunReport);
}

}  // namespace pace
