// The commands of pace-learn, in pace.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "cli/command.h"

namespace pace {
namespace {

struct NoArguments {};

// For --help; HandOver() has carried it out before the command line is read.
void Add(const CommandLine& line, const CommandTitle& title) {
  line.Add<NoArguments>(
      title.name, title.what, "pace doctor",
      [](CLI::App& app, NoArguments& /*arguments*/) { app.prefix_command(); },
      [](const NoArguments& /*arguments*/) -> Status {
        return Unavailable("a command of pace-learn was not handed over to it");
      });
}

bool IsElsewhere(std::string_view name) {
  for (const CommandTitle& title : {kTrainCommand, kCompareCommand, kResultsCommand, kEvalCommand,
                                    kDataCommand, kSftCommand, kServeCommand, kBenchCommand}) {
    if (name == title.name) return true;
  }
  return false;
}

}  // namespace

Status HandOver(char** argv) {
  if (argv[0] == nullptr || argv[1] == nullptr || !IsElsewhere(argv[1])) return Status::Ok();
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = self.parent_path() / "pace-learn";
  execv(program.c_str(), argv);
  return Unavailable(argv[1], ": cannot start ", program, ": ", std::strerror(errno),
                     " (it belongs beside pace; make build makes both)");
}

void AddTrain(const CommandLine& line) {
  Add(line, kTrainCommand);
}
void AddCompare(const CommandLine& line) {
  Add(line, kCompareCommand);
  Add(line, kResultsCommand);
}
void AddEval(const CommandLine& line) {
  Add(line, kEvalCommand);
}
void AddData(const CommandLine& line) {
  Add(line, kDataCommand);
}
void AddSft(const CommandLine& line) {
  Add(line, kSftCommand);
}
void AddServe(const CommandLine& line) {
  Add(line, kServeCommand);
}
void AddBench(const CommandLine& line) {
  Add(line, kBenchCommand);
}

}  // namespace pace
