// pace report
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "cli/commands.h"
#include "record/run_reader.h"
#include "report/report.h"

namespace pace {
namespace {

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

}  // namespace

int RunReportCommand(const ReportArguments& arguments) {
  std::vector<RunData> runs;
  for (const std::string& argument : arguments.runs) {
    for (const std::string& directory : FindRuns(argument)) {
      Result<RunData> run = ReadRun(directory);
      if (!run.ok()) return Fail(run.status());
      for (const std::string& note : run->notes) {
        std::fprintf(stderr, "pace: %s\n", note.c_str());
      }
      runs.push_back(std::move(*run));
    }
  }
  if (runs.size() > kMaxReportRuns) {
    return Fail(InvalidArgument("report: ", runs.size(), " runs: must be at most ", kMaxReportRuns,
                                " (a page with more cannot be read)"));
  }
  const std::string out =
      arguments.out.empty()
          ? (std::filesystem::path(arguments.runs.front()) / "report.html").string()
          : arguments.out;
  const Status written = WriteReport(runs, out);
  if (!written.ok()) return Fail(written);
  std::printf("%s\n", out.c_str());
  return 0;
}

}  // namespace pace
