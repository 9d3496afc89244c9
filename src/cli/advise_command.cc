// pace advise
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "advise/advice.h"
#include "advise/advice_text.h"
#include "cli/command.h"
#include "config/settings.h"
#include "core/file.h"
#include "core/json_writer.h"
#include "terminal/progress.h"
#include "terminal/terminal_text.h"

namespace pace {
namespace {

struct AdviseArguments {
  std::string settings;                // a preset, a YAML file or a run directory
  std::vector<std::string> overrides;  // key=value
  double slowdown = 0.02;
  int64_t num_seeds = MeasureOptions().num_seeds;
  int64_t num_jobs = 0;  // 0 = one per core
  bool json = false;
};

// A directory stands for the settings of the run that it holds.
Result<Settings> LoadLayout(const AdviseArguments& arguments) {
  std::string source = arguments.settings;
  if (Files::Default().Stat(source).kind == FileKind::kFolder) {
    source += "/config.yaml";
    if (!Files::Default().Exists(source)) {
      return NotFound(source, ": not there (name a run directory or a settings file)");
    }
  }
  return LoadSettings(source, arguments.overrides);
}

void PrintTable(const std::vector<CandidateRuns>& runs, const Advice& advice) {
  TextTable table({"candidate", "s/step", "us/token", "lag", "wasted", "trainer idle", ""});
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto mean = [&](double SeedResult::* value) {
      return MeanOver(runs[i].seeds, value).mean;
    };
    table.Add(
        {std::string(runs[i].candidate.title), TextTable::Fixed(mean(&SeedResult::step_seconds), 2),
         TextTable::Fixed(1e6 * mean(&SeedResult::token_seconds), 2),
         TextTable::Fixed(mean(&SeedResult::lag), 2), TextTable::Percent(mean(&SeedResult::wasted)),
         TextTable::Percent(mean(&SeedResult::trainer_idle)), i == advice.best ? "best" : ""});
  }
  std::fputs(table.Render().c_str(), stdout);
}

void PrintText(const Settings& settings, const std::vector<CandidateRuns>& runs,
               const Advice& advice, double slowdown) {
  for (const std::string& line : DescribeLayout(settings)) std::printf("%s\n", line.c_str());
  PrintTable(runs, advice);
  for (const std::string& line : DescribeAdvice(runs, advice, slowdown)) {
    std::printf("%s\n", line.c_str());
  }
}

void PrintJson(const std::vector<CandidateRuns>& runs, const Advice& advice) {
  const auto holds = [](const std::vector<size_t>& indices, size_t i) {
    return std::find(indices.begin(), indices.end(), i) != indices.end();
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    std::string line;
    JsonWriter json(line);
    const auto put = [&](const char* name, const char* error_name, double SeedResult::* value) {
      const SeedMean estimate = MeanOver(runs[i].seeds, value);
      json.Put(name, estimate.mean);
      json.Put(error_name, estimate.error);
    };
    json.BeginObject();
    json.Put("candidate", runs[i].candidate.title);
    json.Put("method", runs[i].candidate.method);
    json.Key("settings");
    json.BeginArray();
    for (const std::string& assignment : runs[i].overrides) json.Value(assignment);
    json.EndArray();
    put("seconds_per_step", "seconds_per_step_error", &SeedResult::step_seconds);
    put("seconds_per_trained_token", "seconds_per_trained_token_error", &SeedResult::token_seconds);
    put("lag", "lag_error", &SeedResult::lag);
    put("wasted", "wasted_error", &SeedResult::wasted);
    put("trainer_idle", "trainer_idle_error", &SeedResult::trainer_idle);
    json.Put("seeds", runs[i].seeds.size());
    json.Put("steps", runs[i].num_steps);
    json.Put("settled", runs[i].settled);
    json.Put("fast", holds(advice.fast, i));
    json.Put("tied", holds(advice.tied, i));
    json.Put("best", i == advice.best);
    json.EndObject();
    std::printf("%s\n", line.c_str());
  }
}

Status RunAdvise(const AdviseArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const Settings settings, LoadLayout(arguments));
  const auto measure = [&] {
    Progress progress("simulating", "runs", 1);
    return MeasureCandidates(
        settings, Candidates(),
        {.num_seeds = arguments.num_seeds,
         .num_threads = arguments.num_jobs,
         .progress = [&](int64_t done, int64_t total) { progress.Update(0, done, total); }});
  };
  PACE_ASSIGN_OR_RETURN(const std::vector<CandidateRuns> runs, measure());
  const Advice advice = Advise(runs, arguments.slowdown);
  if (arguments.json) {
    PrintJson(runs, advice);
  } else {
    PrintText(settings, runs, advice, arguments.slowdown);
  }
  return std::fflush(stdout) == 0 ? Status::Ok() : Unavailable("stdout: cannot be written");
}

}  // namespace

void AddAdvise(const CommandLine& line) {
  line.Add<AdviseArguments>(
      "advise", "Say which controller to use on a cluster, by simulation",
      "pace advise my-cluster.yaml\n"
      "  pace advise math-4b cluster.trainer_gpus=4 --slowdown 0.05",
      [](CLI::App& app, AdviseArguments& arguments) {
        app.add_option("settings", arguments.settings,
                       "A preset (pace config --list), a YAML file or a run directory")
            ->required();
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option(
               "--slowdown", arguments.slowdown,
               "Time per trained token to give for a smaller lag, as a share of the shortest")
            ->check(CLI::Range(0.0, 100.0))
            ->capture_default_str();
        app.add_option("--seeds", arguments.num_seeds, "Simulations of each candidate")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        app.add_option("--jobs", arguments.num_jobs, "Simulations at once; 0 = one per core")
            ->check(CLI::Range(0, 4096));
        app.add_flag("--json", arguments.json, "Print JSON Lines, one per candidate");
      },
      RunAdvise);
}

}  // namespace pace
