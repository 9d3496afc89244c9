// `pace`: reads the command line and hands over to one command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>

#include "cli/commands.h"
#include "record/build_info.h"

namespace pace {
namespace {

constexpr const char* kSettingsHelp = "A preset (pace config --list) or a YAML file";
constexpr const char* kOverridesHelp = "Settings to change, as key=value (pace config --keys)";

CLI::App* AddCommand(CLI::App& app, const char* name, const char* what, const char* example) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer(std::string("Example:\n  ") + example);
  return command;
}

void AddSim(CLI::App& app, SimArguments& arguments) {
  CLI::App* sim =
      AddCommand(app, "sim", "Ask what a policy would do on a cluster, under virtual time",
                 "pace sim math-4b supply.threshold=4\n"
                 "  pace sim math-4b --methods sync,async,effective\n"
                 "  pace sim math-4b --sweep admission.target_occupancy=8,12,16,24");
  sim->add_option("settings", arguments.settings, kSettingsHelp)->required();
  sim->add_option("overrides", arguments.overrides, kOverridesHelp);
  sim->add_option("--methods", arguments.methods,
                  "Methods to run side by side: sync, async, stale-K, oldest-K, raw, generation, "
                  "waiting, effective")
      ->delimiter(',')
      ->allow_extra_args(false);
  sim->add_option("--sweep", arguments.sweep,
                  "key=v1,v2,...: run every value; give it again for a grid")
      ->allow_extra_args(false);
  sim->add_option("--out", arguments.out, "Directory for the runs and report.html");
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
  CLI::App* config = AddCommand(app, "config", "Show settings: resolved, all keys, or all presets",
                                "pace config math-4b supply.threshold=4 > mine.yaml");
  config->add_option("settings", arguments.settings, kSettingsHelp);
  config->add_option("overrides", arguments.overrides, kOverridesHelp);
  config->add_flag("--list", arguments.list, "List the presets");
  config->add_flag("--keys", arguments.keys, "Describe every key, as Markdown");
}

void AddBench(CLI::App& app, BenchArguments& arguments) {
  CLI::App* bench = AddCommand(app, "bench", "Measure the controller; prints JSON",
                               "pace bench controller > bench.json");
  bench->add_option("what", arguments.what, "What to measure")
      ->check(CLI::IsMember({"controller"}))
      ->capture_default_str();
  bench->add_option("--repetitions", arguments.repetitions, "Rounds over all measurements")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  bench->add_flag("--no-python", arguments.no_python, "Leave out the Python implementation");
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
  TokenizeArguments tokenize;
  AddSim(app, sim);
  AddReplay(app, replay);
  AddReport(app, report);
  AddConfig(app, config);
  AddBench(app, bench);
  AddTokenize(app, tokenize);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (app.got_subcommand("sim")) return RunSimCommand(sim);
  if (app.got_subcommand("replay")) return RunReplayCommand(replay);
  if (app.got_subcommand("report")) return RunReportCommand(report);
  if (app.got_subcommand("config")) return RunConfigCommand(config);
  if (app.got_subcommand("tokenize")) return RunTokenizeCommand(tokenize);
  return RunBenchCommand(bench);
}

}  // namespace
}  // namespace pace

int main(int argc, char** argv) {
  return pace::Main(argc, argv);
}
