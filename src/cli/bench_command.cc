// pace bench
#include <unistd.h>

#include <cstdio>

#include "bench/benches.h"
#include "cli/command.h"

namespace pace {
namespace {

struct BenchArguments {
  const CLI::App* app = nullptr;
  std::string what = "controller";
  std::string device = "cpu";
  bool no_python = false;
  bool json = false;  // also on a terminal
  BenchOptions options;
};

// "rollout, train: HELP", for the benchmarks that take the flag.
std::string HelpOf(std::string_view flag, std::string_view help) {
  std::string names;
  for (const Bench& benchmark : Benches()) {
    if (benchmark.Takes(flag)) names += Concat(names.empty() ? "" : ", ", benchmark.name);
  }
  return Concat(names, ": ", help);
}

// Flags that the benchmark would not read are mistakes.
Status CheckFlags(const CLI::App& app, const std::vector<std::string>& overrides,
                  const Bench& benchmark) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string flag = "--" + option->get_lnames().front();
    if (benchmark.Takes(flag)) continue;
    std::string taken;
    for (const std::string_view known : benchmark.flags) {
      if (!known.empty()) taken += Concat(known, ", ");
    }
    return InvalidArgument("bench ", benchmark.name, ": takes no ", flag, " (but ", taken,
                           "--repetitions and --json)");
  }
  if (!overrides.empty() && !benchmark.Takes("KEY=VALUE")) {
    return InvalidArgument("bench ", benchmark.name, ": takes no settings (", overrides.front(),
                           "); methods does");
  }
  return Status::Ok();
}

Status RunBench(const BenchArguments& arguments) {
  const Bench& benchmark = *FindBench(arguments.what);
  PACE_RETURN_IF_ERROR(CheckFlags(*arguments.app, arguments.options.overrides, benchmark));
  BenchOptions options = arguments.options;
  PACE_ASSIGN_OR_RETURN(options.device, ParseDevice(arguments.device));
  options.python = !arguments.no_python;
  options.listener = [&](const std::string& progress) {
    std::fprintf(stderr, "%s: %s\n", arguments.what.c_str(), progress.c_str());
  };
  BenchReport report;
  PACE_RETURN_IF_ERROR(benchmark.run(options, report));
  const bool as_json = arguments.json || isatty(STDOUT_FILENO) == 0;
  std::fputs(as_json ? (report.Json(arguments.what) + "\n").c_str() : report.Table().c_str(),
             stdout);
  return Status::Ok();
}

void AddBenchFlags(CLI::App& app, BenchArguments& arguments) {
  BenchOptions& options = arguments.options;
  arguments.app = &app;
  std::vector<std::string> names;
  for (const Bench& benchmark : Benches()) names.emplace_back(benchmark.name);
  app.add_option("what", arguments.what, "What to measure")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("overrides", options.overrides,
                 HelpOf("KEY=VALUE", "settings, KEY=VALUE ..., after those of the task"));
  app.add_option("--repetitions", options.repetitions, "Rounds over all measurements")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--no-python", arguments.no_python,
               HelpOf("--no-python", "leave out the Python peer"));
  app.add_option("--threads", options.num_threads,
                 HelpOf("--threads", "threads of both sides; train also measures one thread"))
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--model", options.model,
                 HelpOf("--model", "a model's folder (default: a Qwen3 of 15 M random weights)"));
  app.add_option("--tokenizer", options.tokenizer,
                 HelpOf("--tokenizer", "folder of tokenizer.json"));
  app.add_option("--texts", options.texts, HelpOf("--texts", "a .jsonl file, or a folder of them"));
  app.add_option("--device", arguments.device, HelpOf("--device", "cpu or cuda"))
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--shape", options.shapes,
                 HelpOf("--shape",
                        "qwen3-4b, qwen3-0.6b or tiny, decode also qwen3-30b-a3b, methods also "
                        "backlog; methods and train on cuda only (default: decode on cpu tiny, "
                        "methods tiny, qwen3-0.6b and backlog, else the first two)"));
  app.add_option("--batch", options.batches, HelpOf("--batch", "sequences at a time"))
      ->capture_default_str();
  app.add_option("--context", options.context, HelpOf("--context", "tokens before the first"))
      ->capture_default_str();
  app.add_option("--reprefill", options.num_reprefilled,
                 HelpOf("--reprefill", "responses of that many tokens to re-prefill and score"))
      ->capture_default_str();
  app.add_flag("--fp8", options.quantized,
               HelpOf("--fp8", "once more with the layers' weights in 8 bits"));
  app.add_option("--memory", options.memory_gib,
                 HelpOf("--memory",
                        "GiB of the GPU that training may hold (default: what the compiled peer "
                        "holds)"))
      ->check(CLI::PositiveNumber);
  app.add_option("--responses", options.num_responses, HelpOf("--responses", "responses saved"))
      ->capture_default_str();
  app.add_option("--tokens", options.num_tokens, HelpOf("--tokens", "tokens of a response"))
      ->capture_default_str();
  app.add_flag("--json", arguments.json,
               "One JSON object, also on a terminal (elsewhere it is always one)");
}

}  // namespace

void AddBench(const CommandLine& line) {
  line.Add<BenchArguments>(kBenchCommand.name, kBenchCommand.what,
                           "pace bench rollout --threads 2 > bench.json\n"
                           "  pace bench train --repetitions 5 > train.json",
                           AddBenchFlags, RunBench);
}

}  // namespace pace
