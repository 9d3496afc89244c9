// pace-learn in a build without LibTorch: bench alone.
#include "cli/command.h"

namespace pace {
namespace {

struct NoArguments {};

void AddAbsent(const CommandLine& line, const CommandTitle& title) {
  line.Add<NoArguments>(
      title.name, title.what, "pace doctor",
      [](CLI::App& app, NoArguments& /*arguments*/) { app.prefix_command(); },
      [](const NoArguments& /*arguments*/) -> Status {
        return Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)");
      });
}

}  // namespace

void AddTrain(const CommandLine& line) {
  AddAbsent(line, kTrainCommand);
}
void AddCompare(const CommandLine& line) {
  AddAbsent(line, kCompareCommand);
  AddAbsent(line, kResultsCommand);
}
void AddEval(const CommandLine& line) {
  AddAbsent(line, kEvalCommand);
}
void AddData(const CommandLine& line) {
  AddAbsent(line, kDataCommand);
}
void AddSft(const CommandLine& line) {
  AddAbsent(line, kSftCommand);
}
void AddServe(const CommandLine& line) {
  AddAbsent(line, kServeCommand);
}

}  // namespace pace
