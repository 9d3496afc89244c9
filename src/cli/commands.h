// The commands of `pace`, one file each.
//
// main.cc reads the command line into these structs; a command runs and returns
// the process's exit code: 0, or 2 after one line on stderr that says what was
// wrong; train and sft return 3 after a signal asked them to stop and they saved. Data goes to
// stdout, words to stderr.
#ifndef PACE_CLI_COMMANDS_H_
#define PACE_CLI_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/model_commands.h"
#include "core/status.h"

namespace pace {

struct SimArguments {
  std::string settings;                // a preset or a YAML file
  std::vector<std::string> overrides;  // key=value
  std::vector<std::string> methods;    // empty = what the settings say
  std::vector<std::string> sweep;      // key=v1,v2,...
  std::string out;                     // empty = runs/NAME, numbered
  int64_t num_jobs = 0;                // 0 = one per core
  bool json = false;
};
int RunSimCommand(const SimArguments& arguments);

struct ReplayArguments {
  std::string trace;
  std::string config;  // empty = config.yaml beside the trace
  std::string from;    // a snapshot to go on from; events only
};
int RunReplayCommand(const ReplayArguments& arguments);

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;  // empty = report.html in the first run, or beside the runs
};
int RunReportCommand(const ReportArguments& arguments);

struct ConfigArguments {
  std::string settings;
  std::vector<std::string> overrides;
  bool list = false;
  bool keys = false;
  bool methods = false;
};
int RunConfigCommand(const ConfigArguments& arguments);

struct BenchArguments {
  std::string what = "controller";
  int64_t repetitions = 7;
  bool no_python = false;
  int64_t num_threads = 2;                  // rollout, train
  std::string model;                        // rollout, train; empty = random weights
  std::string tokenizer;                    // tokenizer: the folder of tokenizer.json
  std::string texts;                        // tokenizer: .jsonl files
  std::string device = "cpu";               // decode
  std::vector<std::string> shapes;          // decode; empty = by device
  std::vector<int64_t> batches = {1, 128};  // decode
  int64_t context = 512;                    // decode
  bool json = false;                        // also on a terminal
  int64_t num_responses = 100'000;          // checkpoint
  int64_t num_tokens = 1'000;               // checkpoint: of a response
};
int RunBenchCommand(const BenchArguments& arguments);

struct DoctorArguments {
  bool json = false;
};
int RunDoctorCommand(const DoctorArguments& arguments);

struct SandboxArguments {
  std::string address = "127.0.0.1";
  int64_t port = 8080;
  int64_t max_programs = 16;
  int64_t memory_mib = 1024;
  double max_timeout = 300;  // seconds
  std::string python = "python3";
  bool unsafe = false;
};
int RunSandboxCommand(const SandboxArguments& arguments);

struct TokenizeArguments {
  std::string tokenizer;  // the folder of tokenizer.json
  bool decode = false;
  bool skip_special = false;
};
int RunTokenizeCommand(const TokenizeArguments& arguments);

struct VerifyArguments {
  std::string mode = "dapo-int";
};
int RunVerifyCommand(const VerifyArguments& arguments);

struct TrainArguments {
  std::string settings;
  std::vector<std::string> overrides;
  std::string method;              // a method's bundle of settings; empty = as they are
  std::string driver = "runtime";  // or lab
  std::string out;                 // empty = runs/NAME, numbered
  std::string resume;              // a run directory to go on with
  int64_t num_threads = 2;         // lab: 2 = training beside generation
};
int RunTrainCommand(const TrainArguments& arguments);

struct CompareArguments {
  std::string experiment;              // a file, or a name
  bool list = false;                   // print the experiments instead
  std::vector<std::string> overrides;  // key=value, for every arm
  std::vector<std::string> cells;      // ARM.SEED; empty = all
  int64_t num_seeds = 0;               // 0 = as the experiment says
  int64_t num_jobs = 0;                // 0 = one per core
  std::string out;                     // empty = runs/compare/NAME
  bool again = false;
  bool strict = false;
};
int RunCompareCommand(const CompareArguments& arguments);

struct ResultsArguments {
  std::string from = "experiments/results";  // a folder for each comparison
  std::string out;                           // empty = stdout
};
int RunResultsCommand(const ResultsArguments& arguments);

struct EvalArguments {
  std::string settings;
  std::vector<std::string> overrides;
  std::string out;    // a folder for scores and responses; empty = none
  bool json = false;  // also on a terminal
};
int RunEvalCommand(const EvalArguments& arguments);

struct DataArguments {
  std::string settings;                // a preset, a YAML file, or a file of problems
  std::vector<std::string> overrides;  // key=value
  int64_t num_problems = 3;
  bool json = false;
};
int RunDataCommand(const DataArguments& arguments);

struct SftArguments {
  std::string settings;
  std::vector<std::string> overrides;
  std::string out;     // the model's folder
  bool fresh = false;  // random weights of the shape that `model` describes
  bool half = false;   // write bf16
};
int RunSftCommand(const SftArguments& arguments);

// Prints "pace: MESSAGE" on stderr and returns 2.
int Fail(const Status& status);

}  // namespace pace

#endif  // PACE_CLI_COMMANDS_H_
