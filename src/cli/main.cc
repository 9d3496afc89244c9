// `pace`: reads the command line and hands over to one command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <string>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "config/methods.h"
#include "record/build_info.h"

namespace pace {
namespace {

constexpr const char* kSettingsHelp = "A preset (pace config --list) or a YAML file";
constexpr const char* kOverridesHelp = "Settings to change, as key=value (pace config --keys)";

// Every method, for --help.
std::string MethodNames() {
  std::string out;
  for (const Method& method : Methods()) {
    out += Concat(out.empty() ? "" : ", ", method.alias.empty() ? method.name : method.alias);
  }
  return out + " (pace config --methods)";
}

void AddSim(CLI::App& app, SimArguments& arguments) {
  CLI::App* sim =
      AddCommand(app, "sim", "Ask what a policy would do on a cluster, under virtual time",
                 "pace sim math-4b supply.threshold=4\n"
                 "  pace sim math-4b --methods sync,async,pace\n"
                 "  pace sim math-4b --sweep admission.target_occupancy=8,12,16,24");
  sim->add_option("settings", arguments.settings, kSettingsHelp)->required();
  sim->add_option("overrides", arguments.overrides, kOverridesHelp);
  sim->add_option("--methods", arguments.methods,
                  Concat("Methods to run side by side, as pace,async: ", MethodNames()))
      ->delimiter(',')
      ->allow_extra_args(false);
  sim->add_option("--sweep", arguments.sweep,
                  "key=v1,v2,...: run every value; give it again for a grid")
      ->allow_extra_args(false);
  sim->add_option("--out", arguments.out,
                  "Directory for the runs and report.html; with --sweep for sweep.jsonl and "
                  "report.html");
  sim->add_option("--jobs", arguments.num_jobs, "Runs at once; 0 = one per core")
      ->check(CLI::Range(0, 4096));
  sim->add_flag("--json", arguments.json, "Print results as JSON lines instead of a table");
}

void AddReplay(CLI::App& app, ReplayArguments& arguments) {
  CLI::App* replay = AddCommand(app, "replay", "Compute the verdicts of a recorded trace again",
                                "pace replay runs/math-4b/effective/trace.jsonl");
  replay->add_option("trace", arguments.trace, "A trace, or a run's events.jsonl")->required();
  replay->add_option("--config", arguments.config,
                     "JSON with the admission options, or a run's YAML (default: config.yaml "
                     "beside the trace)");
  replay->add_option("--from", arguments.from,
                     "A snapshot to go on from, checkpoints/STEP.json; with events.jsonl only");
}

void AddReport(CLI::App& app, ReportArguments& arguments) {
  CLI::App* report = AddCommand(app, "report", "Draw runs side by side on one HTML page",
                                "pace report runs/a runs/b --out report.html");
  report->add_option("runs", arguments.runs, "Run directories, or directories that hold runs")
      ->required();
  report->add_option("--out", arguments.out, "The page (default: report.html in the first)");
}

void AddConfig(CLI::App& app, ConfigArguments& arguments) {
  CLI::App* config =
      AddCommand(app, "config", "Show settings: resolved, or all keys, presets, methods",
                 "pace config math-4b supply.threshold=4 > mine.yaml");
  config->add_option("settings", arguments.settings, kSettingsHelp);
  config->add_option("overrides", arguments.overrides, kOverridesHelp);
  config->add_flag("--list", arguments.list, "List the presets");
  config->add_flag("--methods", arguments.methods, "List the methods of --method");
  config->add_flag("--keys", arguments.keys, "Describe every key, as Markdown");
}

void AddBench(CLI::App& app, BenchArguments& arguments) {
  CLI::App* bench = AddCommand(app, "bench", "Measure speed beside peers and limits",
                               "pace bench rollout --threads 2 > bench.json\n"
                               "  pace bench train --repetitions 5 > train.json");
  bench->add_option("what", arguments.what, "What to measure")
      ->check(CLI::IsMember({"checkpoint", "controller", "decode", "methods", "rollout", "sandbox",
                             "tokenizer", "train"}))
      ->capture_default_str();
  bench->add_option("--repetitions", arguments.repetitions, "Rounds over all measurements")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  bench->add_flag("--no-python", arguments.no_python, "Leave out the Python peer");
  bench
      ->add_option("--threads", arguments.num_threads,
                   "rollout: threads of both sides; train: one thread, and this many")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  bench->add_option("--model", arguments.model,
                    "rollout, train: a model's folder (default: a Qwen3 of 15 M random weights)");
  bench->add_option("--tokenizer", arguments.tokenizer, "tokenizer: folder of tokenizer.json");
  bench->add_option("--texts", arguments.texts, "tokenizer: a .jsonl file, or a folder of them");
  bench->add_option("--device", arguments.device, "decode, methods, train: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  bench->add_option("--shape", arguments.shapes,
                    "decode, and on cuda train and methods: qwen3-4b, qwen3-0.6b or tiny (default: "
                    "decode on cpu tiny, methods tiny and qwen3-0.6b, else the first two)");
  bench->add_option("--batch", arguments.batches, "decode: sequences at a time")
      ->capture_default_str();
  bench->add_option("--context", arguments.context, "decode: tokens before the first")
      ->capture_default_str();
  bench->add_option("--responses", arguments.num_responses, "checkpoint: responses saved")
      ->capture_default_str();
  bench->add_option("--tokens", arguments.num_tokens, "checkpoint: tokens of a response")
      ->capture_default_str();
  bench->add_flag("--json", arguments.json,
                  "One JSON object, also on a terminal (elsewhere it is always one)");
}

void AddDoctor(CLI::App& app, DoctorArguments& arguments) {
  CLI::App* doctor = AddCommand(
      app, "doctor", "What this build and this machine have, and what they lack", "pace doctor");
  doctor->add_flag("--json", arguments.json, "One JSON object");
}

void AddSandbox(CLI::App& app, SandboxArguments& arguments) {
  CLI::App* sandbox = AddCommand(app, "sandbox", "Run untrusted Python programs, isolated",
                                 "pace sandbox serve --port 8080\n"
                                 "  curl -d '{\"code\": \"print(1)\", \"language\": \"python\"}' "
                                 "http://127.0.0.1:8080/run_code");
  sandbox->require_subcommand(1);
  CLI::App* serve = AddCommand(*sandbox, "serve", "The SandboxFusion interface over HTTP",
                               "pace sandbox serve --address 0.0.0.0 --port 8080");
  serve->add_option("--address", arguments.address, "IP address to listen on")
      ->capture_default_str();
  serve->add_option("--port", arguments.port, "0 = any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  serve->add_option("--max-programs", arguments.max_programs, "Programs at once; more wait")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  serve->add_option("--memory-mib", arguments.memory_mib, "Of one program at most")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  serve->add_option("--max-timeout", arguments.max_timeout, "Seconds of one program at most")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  serve->add_option("--python", arguments.python, "The interpreter of programs")
      ->capture_default_str();
  serve->add_flag("--unsafe", arguments.unsafe,
                  "Without isolation: for programs you trust, where there is none to be had");
}

void AddTokenize(CLI::App& app, TokenizeArguments& arguments) {
  CLI::App* tokenize =
      AddCommand(app, "tokenize", "Turn texts into token ids or back, JSON Lines in and out",
                 "echo '{\"text\": \"hello\"}' | pace tokenize --tokenizer models/tiny");
  tokenize->add_option("--tokenizer", arguments.tokenizer, "Folder that holds tokenizer.json")
      ->required();
  CLI::Option* decode = tokenize->add_flag("--decode", arguments.decode,
                                           "Read {\"ids\"} and write {\"text\"} instead");
  tokenize->add_flag("--skip-special", arguments.skip_special, "Decode without special tokens")
      ->needs(decode);
}

void AddVerify(CLI::App& app, VerifyArguments& arguments) {
  CLI::App* verify = AddCommand(
      app, "verify", "Judge responses against their problems' answers, JSON Lines in and out",
      "echo '{\"response\": \"so x is 34.\\nAnswer: 34\", \"answer\": \"34\"}' | pace verify\n"
      "  pace verify --mode equiv < responses.jsonl");
  verify
      ->add_option("--mode", arguments.mode,
                   "How an answer is found and compared: dapo, dapo-strict, dapo-int, math, equiv, "
                   "gsm8k, exact or retool")
      ->capture_default_str();
}

void AddCompare(CLI::App& app, CompareArguments& arguments) {
  CLI::App* compare = AddCommand(app, "compare", "Compare methods over seeds, in the lab",
                                 "pace compare main\n"
                                 "  pace compare main --seeds 3 --jobs 2\n"
                                 "  pace compare main --cell async.1 --again --out /tmp/one");
  compare->add_option("experiment", arguments.experiment,
                      "A file, or an experiment's name (--list)");
  compare->add_flag("--list", arguments.list, "List the experiments");
  compare->add_option("overrides", arguments.overrides, kOverridesHelp);
  compare->add_option("--seeds", arguments.num_seeds, "Seeds per arm (default: the experiment's)")
      ->check(CLI::Range(1, 1000));
  compare->add_option("--jobs", arguments.num_jobs, "Runs at a time (default: one per core)")
      ->check(CLI::Range(1, 1024));
  compare->add_option("--out", arguments.out,
                      "Where results go and what is there is taken from (default: "
                      "runs/compare/NAME)");
  compare->add_option("--cell", arguments.cells, "Only ARM.SEED; may be given several times")
      ->allow_extra_args(false);
  compare->add_flag("--again", arguments.again, "Also run what is there already");
  compare->add_flag("--strict", arguments.strict, "Exit 2 unless every claim holds");
}

void AddResults(CLI::App& app, ResultsArguments& arguments) {
  CLI::App* results = AddCommand(app, "results", "Write a page of what comparisons found",
                                 "pace results --from runs/compare > results.md\n"
                                 "  pace results --out docs/results.md");
  results->add_option("--from", arguments.from, "Folder of comparisons")->capture_default_str();
  results->add_option("--out", arguments.out, "The page (default: stdout)");
}

void AddTrain(CLI::App& app, TrainArguments& arguments) {
  CLI::App* train = AddCommand(app, "train", "Train a policy by asynchronous RL",
                               "pace train tiny\n"
                               "  pace train tiny --method async run.num_steps=40\n"
                               "  pace train tiny --driver lab\n"
                               "  pace train --resume runs/tiny run.num_steps=160");
  train->add_option("settings", arguments.settings, kSettingsHelp);
  train->add_option("overrides", arguments.overrides, kOverridesHelp);
  train->add_option("--method", arguments.method, Concat("A method's settings: ", MethodNames()));
  train
      ->add_option("--driver", arguments.driver,
                   "runtime = this machine's clock; lab = the cluster model's, to the bit")
      ->check(CLI::IsMember({"runtime", "lab"}))
      ->capture_default_str();
  train->add_option("--out", arguments.out, "The run directory (default: runs/NAME)");
  train->add_option("--resume", arguments.resume,
                    "A run directory to go on with; then key=value, as run.num_steps=60");
  train
      ->add_option("--threads", arguments.num_threads,
                   "lab: 2 = training is computed beside generation")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
}

void AddEval(CLI::App& app, EvalArguments& arguments) {
  CLI::App* eval = AddCommand(app, "eval", "Measure a policy on benchmarks",
                              "pace eval tiny evaluation.num_responses=8\n"
                              "  pace eval tiny policy.model=runs/tiny/checkpoints/step-000080 "
                              "--out runs/eval");
  eval->add_option("settings", arguments.settings, kSettingsHelp)->required();
  eval->add_option("overrides", arguments.overrides, kOverridesHelp);
  eval->add_option("--out", arguments.out,
                   "A new folder for scores.jsonl and responses.jsonl: every response with its "
                   "problem and verdict");
  eval->add_flag("--json", arguments.json,
                 "JSON Lines, also on a terminal (elsewhere they always are)");
}

void AddData(CLI::App& app, DataArguments& arguments) {
  CLI::App* data = AddCommand(app, "data", "Look at the problems that a run trains on",
                              "pace data show smollm2-words -n 1");
  data->require_subcommand(1);
  CLI::App* show =
      AddCommand(*data, "show", "Print prompts exactly as the model sees them",
                 "pace data show tiny -n 5\n"
                 "  pace data show train.jsonl policy.model=models/smollm2\n"
                 "  pace data show train.jsonl task.prompt_key=input task.answer_key=gold");
  show->add_option("settings", arguments.settings,
                   "A preset, a YAML file, or a .jsonl file of problems")
      ->required();
  show->add_option("overrides", arguments.overrides, kOverridesHelp);
  show->add_option("-n,--num-problems", arguments.num_problems, "How many")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  show->add_flag("--json", arguments.json, "One JSON object a line");
}

void AddSft(CLI::App& app, SftArguments& arguments) {
  CLI::App* sft = AddCommand(app, "sft", "Train a model on examples",
                             "pace sft tiny-base --fresh --out models/mine\n"
                             "  pace sft tiny policy.model=models/mine task.kind=dataset "
                             "task.file=examples.jsonl --out models/tuned");
  sft->add_option("settings", arguments.settings, kSettingsHelp)->required();
  sft->add_option("overrides", arguments.overrides, kOverridesHelp);
  sft->add_option("--out", arguments.out, "Folder for the trained model")->required();
  sft->add_flag("--fresh", arguments.fresh,
                "Begin with random weights of the shape that the settings' model section says");
  sft->add_flag("--bf16", arguments.half, "Write the weights as bf16 (default: float32)");
}

int Main(int argc, char** argv) {
  CLI::App app("pace: asynchronous reinforcement learning with controlled staleness", "pace");
  app.require_subcommand(1);
  app.set_version_flag("--version", Concat(PaceVersion(), " (", PaceCommit(), ")"));
  app.footer("Every command has --help with an example.");
  SimArguments sim;
  ReplayArguments replay;
  ReportArguments report;
  ConfigArguments config;
  BenchArguments bench;
  DoctorArguments doctor;
  SandboxArguments sandbox;
  TokenizeArguments tokenize;
  VerifyArguments verify;
  CompareArguments compare;
  ResultsArguments results;
  TrainArguments train;
  EvalArguments eval;
  DataArguments data;
  SftArguments sft;
  ImportArguments import_arguments;
  ExportArguments export_arguments;
  ScoreArguments score;
  GenerateArguments generate;
  AddSim(app, sim);
  AddReplay(app, replay);
  AddReport(app, report);
  AddConfig(app, config);
  AddBench(app, bench);
  AddDoctor(app, doctor);
  AddSandbox(app, sandbox);
  AddTokenize(app, tokenize);
  AddVerify(app, verify);
  AddTrain(app, train);
  AddCompare(app, compare);
  AddResults(app, results);
  AddEval(app, eval);
  AddData(app, data);
  AddSft(app, sft);
  AddImport(app, import_arguments);
  AddExport(app, export_arguments);
  AddScore(app, score);
  AddGenerate(app, generate);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (app.got_subcommand("sim")) return RunSimCommand(sim);
  if (app.got_subcommand("replay")) return RunReplayCommand(replay);
  if (app.got_subcommand("report")) return RunReportCommand(report);
  if (app.got_subcommand("config")) return RunConfigCommand(config);
  if (app.got_subcommand("doctor")) return RunDoctorCommand(doctor);
  if (app.got_subcommand("sandbox")) return RunSandboxCommand(sandbox);
  if (app.got_subcommand("tokenize")) return RunTokenizeCommand(tokenize);
  if (app.got_subcommand("verify")) return RunVerifyCommand(verify);
  if (app.got_subcommand("compare")) return RunCompareCommand(compare);
  if (app.got_subcommand("results")) return RunResultsCommand(results);
  if (app.got_subcommand("train")) return RunTrainCommand(train);
  if (app.got_subcommand("eval")) return RunEvalCommand(eval);
  if (app.got_subcommand("data")) return RunDataCommand(data);
  if (app.got_subcommand("sft")) return RunSftCommand(sft);
  if (app.got_subcommand("import")) return RunImportCommand(import_arguments);
  if (app.got_subcommand("export")) return RunExportCommand(export_arguments);
  if (app.got_subcommand("score")) return RunScoreCommand(score);
  if (app.got_subcommand("generate")) return RunGenerateCommand(generate);
  return RunBenchCommand(bench);
}

}  // namespace
}  // namespace pace

// Errors are values; what is thrown all the same is a library's, and ends in one line.
int main(int argc, char** argv) {
  try {
    return pace::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("pace: out of memory (a smaller model, batch or input may fit)\n", stderr);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    std::fprintf(stderr, "pace: %s\n", what.substr(0, what.find('\n')).c_str());
  }
  return 2;
}
