// The commands that train, in a build without LibTorch.
#include "cli/command.h"

namespace pace {
namespace {

struct NoArguments {};

void AddAbsent(const CommandLine& line, const char* name, const char* what) {
  line.Add<NoArguments>(
      name, what, "pace doctor",
      [](CLI::App& app, NoArguments& /*arguments*/) { app.prefix_command(); },
      [](const NoArguments& /*arguments*/) -> Status {
        return Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)");
      });
}

}  // namespace

void AddTrain(const CommandLine& line) {
  AddAbsent(line, "train", "Train a policy by asynchronous RL");
}
void AddCompare(const CommandLine& line) {
  AddAbsent(line, "compare", "Compare methods over seeds, in the lab");
  AddAbsent(line, "results", "Write a page of what comparisons found");
}
void AddEval(const CommandLine& line) {
  AddAbsent(line, "eval", "Measure a policy on benchmarks");
}
void AddData(const CommandLine& line) {
  AddAbsent(line, "data", "Look at the problems that a run trains on");
}
void AddServe(const CommandLine& line) {
  AddAbsent(line, "serve", "Serve a model over HTTP, with the interfaces of vLLM and OpenAI");
}
void AddSft(const CommandLine& line) {
  AddAbsent(line, "sft", "Train a model on examples");
}

}  // namespace pace
