#include "task/benchmark.h"

#include <unordered_set>

#include "task/synthetic_source.h"

namespace pace {
namespace {

// So many known problems in a row mean that hardly any other is left.
constexpr int64_t kMaxRepeats = 10000;

Result<Benchmark> HeldOutOf(const TaskOptions& options) {
  if (options.kind == TaskKind::kDataset) {
    return InvalidArgument("task.benchmarks = held_out: only generated tasks have one");
  }
  PACE_ASSIGN_OR_RETURN(const auto task, MakeSyntheticTask(options));
  return HeldOutBenchmark(*task, options.held_out_problems,
                          static_cast<uint64_t>(options.held_out_seed), options.prompt_template);
}

}  // namespace

Result<Benchmark> HeldOutBenchmark(const SyntheticTask& task, int64_t num_problems, uint64_t seed,
                                   std::string_view prompt_template) {
  Benchmark benchmark{.name = std::string(kHeldOutName)};
  std::unordered_set<std::string> known;
  int64_t repeats = 0;
  for (uint64_t index = 0; std::ssize(benchmark.problems) < num_problems; ++index) {
    const Exercise exercise = task.At(Purpose::kHeldOut, seed, index);
    if (known.insert(task.Identity(exercise)).second) {
      repeats = 0;
      benchmark.problems.push_back(ToProblem(
          task, exercise, Concat(kHeldOutName, "/", benchmark.problems.size()), prompt_template));
    } else if (++repeats == kMaxRepeats) {
      return InvalidArgument("task.held_out_problems = ", num_problems, ": ", task.name(),
                             " holds out only about ", benchmark.problems.size(),
                             " different problems");
    }
  }
  return benchmark;
}

Result<Benchmark> LoadBenchmark(const std::string& entry, const DatasetForm& form) {
  DatasetForm own = form;
  std::string path = entry;
  // A name may contain '@'; only a mode after the last one is taken off.
  const size_t at = entry.rfind('@');
  if (at != std::string::npos && entry.find('/', at) == std::string::npos) {
    const Result<VerifierMode> mode = VerifierModeFromName(entry.substr(at + 1));
    if (mode.ok()) {
      own.verifier = *mode;
      path = entry.substr(0, at);
    } else if (!path.ends_with(".jsonl")) {
      return mode.status().At("task.benchmarks = " + entry);
    }
  }
  const Result<Dataset> data = Dataset::Load(path, std::move(own));
  if (!data.ok()) return data.status().At("task.benchmarks");
  Benchmark benchmark{.name = data->name()};
  for (int64_t row = 0; row < data->size(); ++row) benchmark.problems.push_back(data->Row(row));
  return benchmark;
}

Result<std::vector<Benchmark>> LoadBenchmarks(const TaskOptions& options) {
  PACE_ASSIGN_OR_RETURN(const DatasetForm form, DatasetFormOf(options));
  std::vector<std::string> entries = options.benchmarks;
  if (entries.empty() && options.kind != TaskKind::kDataset) entries.emplace_back(kHeldOutName);
  std::vector<Benchmark> benchmarks;
  for (const std::string& entry : entries) {
    PACE_ASSIGN_OR_RETURN(Benchmark loaded,
                          entry == kHeldOutName ? HeldOutOf(options) : LoadBenchmark(entry, form));
    for (const Benchmark& other : benchmarks) {
      if (other.name != loaded.name) continue;
      return InvalidArgument("task.benchmarks = ", entry, ": a second benchmark named ",
                             loaded.name, " (rename the file)");
    }
    benchmarks.push_back(std::move(loaded));
  }
  return benchmarks;
}

}  // namespace pace
