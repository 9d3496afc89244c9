// pace compare, pace results
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "compare/claims.h"
#include "compare/comparison.h"
#include "compare/comparison_manifest.h"
#include "compare/experiment.h"
#include "compare/results.h"
#include "compare/results_page.h"
#include "compare/results_pictures.h"
#include "core/atomic_file.h"
#include "core/file.h"
#include "core/printable.h"
#include "record/build_info.h"
#include "report/report.h"
#include "terminal/interrupt.h"
#include "terminal/progress.h"

namespace pace {
namespace {

constexpr size_t kMaxFindingsBytes = size_t{1} << 20;
// Beside the page.
constexpr std::string_view kPicturesFolder = "images";

struct CompareArguments {
  std::string experiment;              // a file, or a name
  bool list = false;                   // print the experiments instead
  std::vector<std::string> overrides;  // key=value, for every arm
  std::vector<std::string> cells;      // ARM.SEED; empty = all
  int64_t num_seeds = 0;               // 0 = as the experiment says
  int64_t num_jobs = 0;                // 0 = one per core
  std::string out;                     // empty = runs/compare/NAME
  std::vector<std::string> reuse;      // folders of other comparisons
  bool again = false;
  bool strict = false;
};

struct ResultsArguments {
  std::string from = "results/experiments";  // a folder for each comparison
  std::string out;                           // empty = stdout
};

// "effective.3"
Result<CellId> ParseCellId(const std::string& text) {
  const size_t dot = text.rfind('.');
  CellId id;
  if (dot != std::string::npos) {
    id.arm = text.substr(0, dot);
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + dot + 1, end, id.seed);
    if (error == std::errc() && stop == end) return id;
  }
  return InvalidArgument("--cell ", Printable(text), ": must be ARM.SEED, as in async.1");
}

ComparisonManifest ComparisonManifestOf(const CompareArguments& arguments) {
  return {.version = std::string(PaceVersion()),
          .commit = std::string(PaceCommit()),
          .machine = Concat(CpuModel(), ", ", std::thread::hardware_concurrency(), " cores"),
          .overrides = arguments.overrides};
}

// Cells of other comparisons that this program would make with the same bits.
Result<std::vector<Cell>> FinishedElsewhere(const CompareArguments& arguments) {
  std::vector<Cell> finished;
  for (const std::string& folder : arguments.reuse) {
    PACE_ASSIGN_OR_RETURN(const ComparisonManifest manifest, ReadComparisonManifest(folder));
    if (!manifest.IsOfSameProgram(ComparisonManifestOf(arguments))) {
      std::fprintf(stderr,
                   "%s: not reused, its cells are not all by this commit on this processor\n",
                   folder.c_str());
      continue;
    }
    PACE_ASSIGN_OR_RETURN(std::vector<Cell> cells, ReadCells(Concat(folder, "/", kCellsFile)));
    std::ranges::move(cells, std::back_inserter(finished));
  }
  return finished;
}

// Before the first cell, so that a call that is killed leaves it, too.
Status WriteManifest(const Experiment& experiment, const CompareArguments& arguments,
                     const std::string& directory, const ComparisonWork& work) {
  ComparisonManifest manifest = ComparisonManifestOf(arguments);
  if (work.kept > 0) {
    const Result<ComparisonManifest> before = ReadComparisonManifest(directory);
    manifest.is_mixed = !before.ok() || !before->IsOfSameProgram(manifest);
  }
  return WriteFileAtomically(Concat(directory, "/", kComparisonManifestFile),
                             ManifestToJson(experiment, manifest));
}

Status WriteResults(const Experiment& experiment, const std::vector<Cell>& cells,
                    const CompareArguments& arguments, const std::string& directory) {
  const CellTable table(experiment, cells);
  const std::string text = ResultsMarkdown(table);
  PACE_RETURN_IF_ERROR(WriteFileAtomically(directory + "/results.md", text));
  std::printf("%s", text.c_str());
  if (table.seeds().empty()) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const std::vector<RunData> runs, MeanRuns(table));
  const std::string page = directory + "/report.html";
  PACE_RETURN_IF_ERROR(WriteReport(runs, page));
  const ClaimCounts counts = CountClaims(table);
  std::printf("claims: %lld hold, %lld do not, %lld undecided\nreport: %s\n",
              static_cast<long long>(counts.hold), static_cast<long long>(counts.fail),
              static_cast<long long>(counts.undecided), page.c_str());
  if (arguments.strict && counts.fail + counts.undecided > 0) {
    return InvalidArgument(experiment.name, ": ", counts.fail + counts.undecided,
                           " claims do not hold (--strict)");
  }
  return Status::Ok();
}

Status ListExperiments() {
  for (const BuiltInExperiment& known : BuiltInExperiments()) {
    PACE_ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(std::string(known.name)));
    std::printf("%-20s %s\n", experiment.name.c_str(), experiment.title.c_str());
  }
  return Status::Ok();
}

Status RunCompare(const CompareArguments& arguments) {
  if (arguments.list) return ListExperiments();
  if (arguments.experiment.empty()) {
    return InvalidArgument("compare: name an experiment (pace compare --list) or a file");
  }
  PACE_ASSIGN_OR_RETURN(Experiment experiment, LoadExperiment(arguments.experiment));
  if (arguments.num_seeds > 0) experiment.num_seeds = arguments.num_seeds;
  ComparisonOptions options;
  options.directory = arguments.out.empty() ? "runs/compare/" + experiment.name : arguments.out;
  options.num_jobs = arguments.num_jobs;
  options.overrides = arguments.overrides;
  options.again = arguments.again;
  for (const std::string& text : arguments.cells) {
    PACE_ASSIGN_OR_RETURN(CellId id, ParseCellId(text));
    options.only.push_back(std::move(id));
  }
  PACE_ASSIGN_OR_RETURN(options.finished, FinishedElsewhere(arguments));
  const Experiment named = WithOverrides(experiment, arguments.overrides);
  const std::string manifest = Concat(options.directory, "/", kComparisonManifestFile);
  Status manifest_written = Status::Ok();
  Interrupt interrupt;
  bool asked = false;
  Mutex mutex;
  options.stop = [&] {
    const MutexLock lock(mutex);
    asked = asked || interrupt.Take();
    return asked || !manifest_written.ok();
  };
  std::unique_ptr<Progress> progress;
  options.begin = [&](const ComparisonWork& work) {
    std::fprintf(stderr, "%s: %zu runs to make, %zu there already, %zu reused, in %s\n",
                 experiment.name.c_str(), work.to_run, work.kept, work.taken,
                 options.directory.c_str());
    // A call that changes no cell leaves the manifest of the one that made them.
    if (work.to_run + work.taken > 0 || !Files::Default().Exists(manifest)) {
      manifest_written = WriteManifest(named, arguments, options.directory, work);
    }
    if (work.to_run > 0) progress = std::make_unique<Progress>("comparing", "steps", work.to_run);
  };
  options.progress = [&](size_t cell, int64_t done, int64_t total) {
    progress->Update(cell, done, total);
  };
  const Result<std::vector<Cell>> cells = RunComparison(experiment, options);
  progress.reset();
  if (!cells.ok()) return cells.status();
  PACE_RETURN_IF_ERROR(manifest_written);
  PACE_RETURN_IF_ERROR(WriteResults(named, *cells, arguments, options.directory));
  if (asked) {
    std::fprintf(stderr, "stopped early; the same command goes on with what is missing\n");
  }
  return Status::Ok();
}

// The findings of a folder of comparisons in words: findings.md, if there is one.
Result<std::string> ReadFindings(const std::string& folder,
                                 const std::vector<FinishedComparison>& comparisons) {
  const std::string path = folder + "/findings.md";
  if (!Files::Default().Exists(path)) return std::string();
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFindingsBytes));
  Result<std::string> filled = FillFindings(text, comparisons);
  if (!filled.ok()) return filled.status().At(path);
  return filled;
}

Status RunResults(const ResultsArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const std::vector<FinishedComparison> comparisons,
                        ReadComparisons(arguments.from));
  if (comparisons.empty()) return NotFound(arguments.from, ": holds no comparison");
  PACE_ASSIGN_OR_RETURN(const std::string findings, ReadFindings(arguments.from, comparisons));
  const std::vector<ResultsPicture> pictures = ResultsPictures(comparisons);
  const std::string page =
      ResultsPage(comparisons, findings + PicturesText(pictures, std::string(kPicturesFolder)));
  if (arguments.out.empty()) {
    std::fputs(page.c_str(), stdout);
    return std::fflush(stdout) == 0 ? Status::Ok() : Unavailable("stdout: cannot be written");
  }
  const std::filesystem::path folder =
      std::filesystem::path(arguments.out).parent_path() / kPicturesFolder;
  if (!pictures.empty()) PACE_RETURN_IF_ERROR(Files::Default().CreateFolder(folder));
  for (const ResultsPicture& picture : pictures) {
    PACE_RETURN_IF_ERROR(WriteFileAtomically(folder / (picture.name + ".svg"), picture.svg));
  }
  PACE_RETURN_IF_ERROR(WriteFileAtomically(arguments.out, page));
  std::printf("%s: %zu comparisons, %zu pictures in %s\n", arguments.out.c_str(),
              comparisons.size(), pictures.size(), folder.c_str());
  return Status::Ok();
}

}  // namespace

void AddCompare(const CommandLine& line) {
  line.Add<CompareArguments>(
      kCompareCommand.name, kCompareCommand.what,
      "pace compare main\n"
      "  pace compare main --seeds 3 --jobs 2\n"
      "  pace compare main --cell async.1 --again --out /tmp/one",
      [](CLI::App& app, CompareArguments& arguments) {
        app.add_option("experiment", arguments.experiment,
                       "A file, or an experiment's name (--list)");
        app.add_flag("--list", arguments.list, "List the experiments");
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option("--seeds", arguments.num_seeds, "Seeds per arm (default: the experiment's)")
            ->check(CLI::Range(1, 1000));
        app.add_option("--jobs", arguments.num_jobs, "Runs at a time (default: one per core)")
            ->check(CLI::Range(1, 1024));
        app.add_option("--out", arguments.out,
                       "Where results go; finished runs in it are reused (default: "
                       "runs/compare/NAME)");
        app.add_option("--cell", arguments.cells, "Only ARM.SEED; may be given several times")
            ->allow_extra_args(false);
        app.add_option("--reuse", arguments.reuse,
                       "Folder of another comparison: its runs of equal settings, by this commit "
                       "on this kind of processor, are not made again; may be given several times")
            ->allow_extra_args(false);
        app.add_flag("--again", arguments.again, "Repeat finished runs, too");
        app.add_flag("--strict", arguments.strict, "Exit 2 unless every claim holds");
      },
      RunCompare);
  line.Add<ResultsArguments>(
      kResultsCommand.name, kResultsCommand.what,
      "pace results --from runs/compare > results.md\n"
      "  pace results --out docs/results.md",
      [](CLI::App& app, ResultsArguments& arguments) {
        app.add_option("--from", arguments.from, "Folder of comparisons")->capture_default_str();
        app.add_option(
            "--out", arguments.out,
            "The page, with pictures in images/ beside it (default: stdout, no pictures)");
      },
      RunResults);
}

}  // namespace pace
