// The commands of `pace`, one file each, which holds its flags, its help and its code.
//
//   struct ReplayArguments {
//     std::string trace;
//   };
//   line.Add<ReplayArguments>(
//       "replay", "Compute the verdicts of a recorded trace again", "pace replay trace.jsonl",
//       [](CLI::App& app, ReplayArguments& arguments) {
//         app.add_option("trace", arguments.trace, "A trace")->required();
//       },
//       [](const ReplayArguments& /*arguments*/) { return Status::Ok(); });
//
// A command returns a Status or the process's exit code: 0, or 2 after one line on stderr
// that says what was wrong; train and sft return 3 after a signal asked them to stop and
// they saved. Data goes to stdout, words to stderr.
#ifndef PACE_CLI_COMMAND_H_
#define PACE_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "core/status.h"

namespace pace {

inline constexpr const char* kSettingsHelp = "A preset (pace config --list) or a YAML file";
inline constexpr const char* kOverridesHelp =
    "Settings to change, as key=value (pace config --keys)";
// Every method, for --help.
std::string MethodNames();

// After an error, "pace: MESSAGE" on stderr and 2.
int ExitCode(const Status& status);
int ExitCode(const Result<int>& code);

struct InferenceArguments;
// Those of every command that runs a model.
void AddInferenceFlags(CLI::App& app, InferenceArguments& arguments);

class CommandLine {
 public:
  // Commands go to `app`; the one on the command line becomes `chosen`. Borrows both.
  CommandLine(CLI::App& app, std::function<int()>& chosen) : app_(app), chosen_(chosen) {}

  // A command of its own arguments: `add_flags` declares them, `run` takes them.
  template <typename Arguments, typename Run>
  void Add(const char* name, const char* what, const char* example,
           void (*add_flags)(CLI::App&, Arguments&), Run run) const {
    CLI::App& command = AddNamed(name, what, example);
    auto arguments = std::make_shared<Arguments>();
    add_flags(command, *arguments);
    command.callback([arguments, run, &chosen = chosen_] {
      chosen = [arguments, run] { return ExitCode(run(*arguments)); };
    });
  }
  // A command that has commands.
  CommandLine AddGroup(const char* name, const char* what, const char* example) const;

 private:
  CLI::App& AddNamed(const char* name, const char* what, const char* example) const;

  CLI::App& app_;
  std::function<int()>& chosen_;
};

// Two programs have these commands. Loading LibTorch takes a third of a second, so `pace` holds
// the commands that do without it, and replaces itself by `pace-learn`, which lies beside it and
// holds all, where argv[1] is another (learning_elsewhere.cc). Returns in the program that goes on.
Status HandOver(char** argv);

struct CommandTitle {
  const char* name;
  const char* what;
};
// Those of pace-learn.
inline constexpr CommandTitle kTrainCommand{"train", "Train a policy by asynchronous RL"};
inline constexpr CommandTitle kCompareCommand{"compare", "Compare methods over seeds, in the lab"};
inline constexpr CommandTitle kResultsCommand{"results", "Write a page of what comparisons found"};
inline constexpr CommandTitle kEvalCommand{"eval", "Measure a policy on benchmarks"};
inline constexpr CommandTitle kDataCommand{"data", "Look at the problems that a run trains on"};
inline constexpr CommandTitle kSftCommand{"sft", "Train a model on examples"};
inline constexpr CommandTitle kServeCommand{
    "serve", "Serve a model over HTTP, with the interfaces of vLLM and OpenAI"};
inline constexpr CommandTitle kBenchCommand{"bench", "Measure speed beside peers and limits"};

// One for each *_command.cc, in the order of --help.
void AddSim(const CommandLine& line);
void AddAdvise(const CommandLine& line);
void AddLaunch(const CommandLine& line);
void AddReplay(const CommandLine& line);
void AddReport(const CommandLine& line);
void AddConfig(const CommandLine& line);
void AddBench(const CommandLine& line);
void AddDoctor(const CommandLine& line);
void AddSandbox(const CommandLine& line);
void AddTokenize(const CommandLine& line);
void AddVerify(const CommandLine& line);
void AddTrain(const CommandLine& line);
void AddCompare(const CommandLine& line);  // and results
void AddEval(const CommandLine& line);
void AddData(const CommandLine& line);
void AddSft(const CommandLine& line);
void AddImport(const CommandLine& line);
void AddExport(const CommandLine& line);
void AddScore(const CommandLine& line);
void AddGenerate(const CommandLine& line);
void AddServe(const CommandLine& line);

}  // namespace pace

#endif  // PACE_CLI_COMMAND_H_
