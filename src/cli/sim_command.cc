// pace sim
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "config/methods.h"
#include "config/settings.h"
#include "core/atomic_file.h"
#include "core/json_writer.h"
#include "core/parallel.h"
#include "judge/python_policy.h"
#include "record/run_directory.h"
#include "record/run_reader.h"
#include "record/run_writer.h"
#include "report/report.h"
#include "report/sweep_page.h"
#include "sim/simulation.h"
#include "sim/sweep.h"
#include "terminal/progress.h"
#include "terminal/terminal_text.h"

namespace pace {
namespace {

struct SimArguments {
  std::string settings;                // a preset or a YAML file
  std::vector<std::string> overrides;  // key=value
  std::vector<std::string> methods;    // empty = what the settings say
  std::vector<std::string> sweep;      // key=v1,v2,...
  std::string out;                     // empty = runs/NAME, numbered
  int64_t num_jobs = 0;                // 0 = one per core
  bool json = false;
};

// One run of a comparison.
struct SimRun {
  std::string name;
  Settings settings;
  std::string directory;
  std::optional<double> reference;  // measured seconds per step, if known
  SimTotals totals;
};

// The runs that the arguments ask for: one per method, or the settings as they are.
Result<std::vector<SimRun>> PlanRuns(const SimArguments& arguments, const Settings& settings,
                                     const std::string& out) {
  std::vector<std::string> methods = arguments.methods;
  const char* const where = methods.empty() ? "compare.methods" : "--methods";
  if (methods.empty()) methods = settings.compare.methods;
  std::vector<SimRun> runs;
  if (methods.empty()) {
    runs.push_back({MethodName(settings.admission), settings, out, {}, {}});
    return runs;
  }
  for (const std::string& method : methods) {
    PACE_ASSIGN_OR_RETURN(const Settings bundled, ApplyMethod(settings, method, where));
    PACE_ASSIGN_OR_RETURN(const auto reference, ReferenceSeconds(settings.compare, method));
    runs.push_back({method, bundled, Concat(out, "/", method), reference, {}});
  }
  return runs;
}

Status RunOne(SimRun& run, const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t num_responses =
      run.settings.run.num_steps * run.settings.batch.num_groups * run.settings.batch.group_size;
  PACE_ASSIGN_OR_RETURN(const auto writer,
                        RunWriter::Create(run.directory, run.settings, {run.name, "sim"},
                                          run.settings.record.Resolve(num_responses)));
  SimOptions options{.writer = writer.get(), .progress = progress};
  const AdmissionOptions& admission = run.settings.admission;
  PACE_ASSIGN_OR_RETURN(const auto python,
                        PythonNameOf("admission.policy", admission.python_class));
  if (python.has_value()) {
    options.admission = [&] {
      return std::make_unique<PythonPolicy>(*python, admission, /*saved=*/false);
    };
  }
  PACE_ASSIGN_OR_RETURN(const SimResult result, RunSimulation(run.settings, options));
  run.totals = result.totals;
  return writer->Finish();
}

Status RunAll(std::vector<SimRun>& runs, int64_t num_jobs) {
  Progress progress("simulating", "steps", runs.size());
  std::vector<Status> statuses(runs.size());
  ForEachInParallel(runs.size(), num_jobs, [&](size_t i) {
    statuses[i] = RunOne(
        runs[i], [&progress, i](int64_t done, int64_t total) { progress.Update(i, done, total); });
  });
  for (const Status& status : statuses) PACE_RETURN_IF_ERROR(status);
  return Status::Ok();
}

void PrintTable(const std::vector<SimRun>& runs) {
  bool any_reference = false;
  for (const SimRun& run : runs) any_reference |= run.reference.has_value();
  std::vector<std::string> header = {"method", "s/step"};
  if (any_reference) header.push_back("measured");
  for (const char* name :
       {"s/prompt", "waiting", "generation", "rejected", "budget", "pool", "wasted"}) {
    header.emplace_back(name);
  }
  TextTable table(header);
  for (const SimRun& run : runs) {
    const SimTotals& totals = run.totals;
    std::vector<std::string> row = {MethodTitle(run.name),
                                    TextTable::Fixed(totals.mean_step.count(), 2)};
    if (any_reference) row.push_back(run.reference ? TextTable::Fixed(*run.reference, 2) : "");
    row.push_back(TextTable::Fixed(totals.time_per_trained_prompt.count(), 3));
    row.push_back(TextTable::Fixed(totals.mean_waiting, 2));
    row.push_back(TextTable::Fixed(totals.mean_generation, 2));
    row.push_back(TextTable::Percent(totals.rejected_share));
    row.push_back(totals.mean_budget ? TextTable::Percent(*totals.mean_budget) : "");
    row.push_back(TextTable::Fixed(totals.mean_occupancy_at_step, 1));
    row.push_back(TextTable::Percent(totals.UntrainedShare()));
    table.Add(row);
  }
  std::fputs(table.Render().c_str(), stdout);
}

void PutTotals(JsonWriter& json, const SimTotals& totals) {
  json.Put("seconds_per_step", totals.mean_step.count());
  json.Put("seconds_per_trained_prompt", totals.time_per_trained_prompt.count());
  json.Put("waiting", totals.mean_waiting);
  json.Put("generation", totals.mean_generation);
  json.Put("rejected_share", totals.rejected_share);
  json.Put("budget", totals.mean_budget);
  json.Put("occupancy", totals.mean_occupancy_at_step);
  json.Put("gpu_seconds", totals.gpu_seconds);
  json.Put("tokens_generated", totals.num_tokens_generated);
  json.Put("tokens_never_trained", totals.num_tokens_never_trained);
  json.Put("tokens_in_pool", totals.num_tokens_in_pool);
}

void PrintJson(const std::vector<SimRun>& runs) {
  for (const SimRun& run : runs) {
    std::string line;
    JsonWriter json(line);
    json.BeginObject();
    json.Put("method", run.name);
    json.Put("directory", run.directory);
    json.Put("measured_seconds_per_step", run.reference);
    PutTotals(json, run.totals);
    json.EndObject();
    std::printf("%s\n", line.c_str());
  }
}

Status WriteComparison(const std::vector<SimRun>& runs, const std::string& path) {
  std::vector<RunData> data;
  for (const SimRun& run : runs) {
    PACE_ASSIGN_OR_RETURN(RunData read, ReadRun(run.directory));
    data.push_back(std::move(read));
  }
  ReportOptions options;
  for (const SimRun& run : runs) {
    if (run.reference.has_value()) options.reference_step_seconds[run.name] = *run.reference;
  }
  return WriteReport(data, path, options);
}

std::string SettingOf(const SweepRow& row) {
  std::string setting;
  for (const std::string& assignment : row.assignments) {
    setting += (setting.empty() ? "" : " ") + assignment;
  }
  return setting;
}

void PrintSweepTable(const SweepResult& sweep) {
  TextTable table(
      {"setting", "s/step", "s/prompt", "waiting", "generation", "rejected", "wasted", "front"});
  for (size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    table.Add({SettingOf(row), TextTable::Fixed(row.totals.mean_step.count(), 2),
               TextTable::Fixed(row.totals.time_per_trained_prompt.count(), 3),
               TextTable::Fixed(row.totals.mean_waiting, 2),
               TextTable::Fixed(row.totals.mean_generation, 2),
               TextTable::Percent(row.totals.rejected_share),
               TextTable::Percent(SweepCost::Of(row.totals).wasted),
               i == sweep.best ? "best"
               : row.on_front  ? "yes"
                               : ""});
  }
  std::fputs(table.Render().c_str(), stdout);
}

std::string SweepJson(const SweepResult& sweep) {
  std::string out;
  for (size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    JsonWriter json(out);
    json.BeginObject();
    json.Key("settings");
    json.BeginArray();
    for (const std::string& assignment : row.assignments) json.Value(assignment);
    json.EndArray();
    PutTotals(json, row.totals);
    json.Put("on_front", row.on_front);
    json.Put("best", i == sweep.best);
    json.EndObject();
    out += '\n';
  }
  return out;
}

std::string SweepHtml(const SimArguments& arguments, const SweepResult& sweep) {
  SweepPage page{.title = arguments.settings, .advice = sweep.advice, .points = {}};
  for (size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    page.points.push_back({.setting = SettingOf(row),
                           .step_seconds = row.totals.mean_step.count(),
                           .seconds = row.totals.time_per_trained_prompt.count(),
                           .waiting = row.totals.mean_waiting,
                           .generation = row.totals.mean_generation,
                           .rejected = row.totals.rejected_share,
                           .wasted = SweepCost::Of(row.totals).wasted,
                           .on_front = row.on_front,
                           .is_best = i == sweep.best});
  }
  return RenderSweepPage(page);
}

// sweep.jsonl, report.html and the settings that the sweep started from.
Status WriteSweep(const SimArguments& arguments, const Settings& settings,
                  const SweepResult& sweep) {
  PACE_RETURN_IF_ERROR(WriteFileAtomically(arguments.out + "/config.yaml", ToYaml(settings)));
  PACE_RETURN_IF_ERROR(
      WriteFileAtomically(arguments.out + "/report.html", SweepHtml(arguments, sweep)));
  PACE_RETURN_IF_ERROR(WriteFileAtomically(arguments.out + "/sweep.jsonl", SweepJson(sweep)));
  std::fprintf(stderr, "report: %s/report.html\n", arguments.out.c_str());
  return Status::Ok();
}

// Made before the first run: what cannot be written is not computed.
Status MakeSweepFolder(const std::string& folder) {
  PACE_RETURN_IF_ERROR(CreateFolders(folder));
  if (Files::Default().Exists(folder + "/sweep.jsonl")) {
    return InvalidArgument("--out ", folder, ": holds a sweep already (name another folder)");
  }
  return Status::Ok();
}

Status RunSweepOver(const SimArguments& arguments, const Settings& settings) {
  std::vector<SweepAxis> axes;
  if (!arguments.methods.empty()) axes.push_back({"method", arguments.methods});
  for (const std::string& text : arguments.sweep) {
    PACE_ASSIGN_OR_RETURN(SweepAxis axis, ParseSweepAxis(text));
    axes.push_back(std::move(axis));
  }
  if (!arguments.out.empty()) PACE_RETURN_IF_ERROR(MakeSweepFolder(arguments.out));
  SweepOptions options;
  options.num_threads = arguments.num_jobs;
  const auto run = [&] {
    Progress progress("sweeping", "runs", 1);
    options.progress = [&](int64_t done, int64_t total) { progress.Update(0, done, total); };
    return RunSweep(settings, axes, options);
  };
  PACE_ASSIGN_OR_RETURN(const SweepResult sweep, run());
  if (arguments.json) {
    std::fputs(SweepJson(sweep).c_str(), stdout);
  } else {
    PrintSweepTable(sweep);
  }
  std::fprintf(stderr, "%s\n", sweep.advice.c_str());
  return arguments.out.empty() ? Status::Ok() : WriteSweep(arguments, settings, sweep);
}

Status RunSim(const SimArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const Settings settings,
                        LoadSettings(arguments.settings, arguments.overrides));
  if (!arguments.sweep.empty()) return RunSweepOver(arguments, settings);

  const std::string out =
      arguments.out.empty() ? FreeRunDirectory(arguments.settings) : arguments.out;
  PACE_ASSIGN_OR_RETURN(std::vector<SimRun> runs, PlanRuns(arguments, settings, out));
  if (runs.size() > kMaxReportRuns) {
    return InvalidArgument("--methods: ", runs.size(), " methods: must be at most ",
                           kMaxReportRuns);
  }
  for (const SimRun& run : runs) {
    (void)CreateFolders(FolderOf(run.directory));  // RunWriter says what is wrong
  }
  PACE_RETURN_IF_ERROR(RunAll(runs, arguments.num_jobs));
  const std::string report = out + "/report.html";
  PACE_RETURN_IF_ERROR(WriteComparison(runs, report));
  if (arguments.json) {
    PrintJson(runs);
  } else {
    PrintTable(runs);
  }
  std::fprintf(stderr, "report: %s\n", report.c_str());
  return Status::Ok();
}

}  // namespace

void AddSim(const CommandLine& line) {
  line.Add<SimArguments>(
      "sim", "Ask what a policy would do on a cluster, under virtual time",
      "pace sim math-4b supply.threshold=4\n"
      "  pace sim math-4b --methods sync,async,pace\n"
      "  pace sim math-4b --sweep admission.target_occupancy=8,12,16,24",
      [](CLI::App& app, SimArguments& arguments) {
        app.add_option("settings", arguments.settings, kSettingsHelp)->required();
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option("--methods", arguments.methods,
                       Concat("Methods to run side by side, as pace,async: ", MethodNames()))
            ->delimiter(',')
            ->allow_extra_args(false);
        app.add_option("--sweep", arguments.sweep,
                       "key=v1,v2,...: run every value; give it again for a grid")
            ->allow_extra_args(false);
        app.add_option("--out", arguments.out,
                       "Directory for the runs and report.html; with --sweep for sweep.jsonl and "
                       "report.html");
        app.add_option("--jobs", arguments.num_jobs, "Runs at once; 0 = one per core")
            ->check(CLI::Range(0, 4096));
        app.add_flag("--json", arguments.json, "Print results as JSON lines instead of a table");
      },
      RunSim);
}

}  // namespace pace
