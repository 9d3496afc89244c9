// Benchmark: a fixed list of problems to evaluate on, under a name.
//
//   Result<std::vector<Benchmark>> all = LoadBenchmarks(settings.task);
//
// Its metric is eval/<name>/mean@k.
//
// Thread-safety: values.
#ifndef PACE_TASK_BENCHMARK_H_
#define PACE_TASK_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/task_options.h"
#include "core/status.h"
#include "task/dataset.h"
#include "task/problem.h"
#include "task/synthetic_task.h"

namespace pace {

inline constexpr std::string_view kHeldOutName = "held_out";

struct Benchmark {
  std::string name = {};
  std::vector<Problem> problems = {};
};

// `num_problems` different problems from the held-out side of the task, the same
// for the same seed; more of them only extend the list. An error where the task
// has too few.
Result<Benchmark> HeldOutBenchmark(const SyntheticTask& task, int64_t num_problems, uint64_t seed,
                                   std::string_view prompt_template = kProblemField);

// "FILE", or "FILE@MODE" for a verifier mode of its own; `form` is that of the
// other files. The benchmark is named after the file: aime2024.jsonl is aime2024.
Result<Benchmark> LoadBenchmark(const std::string& entry, const DatasetForm& form);

// All that the options name. Two of one name are an error.
Result<std::vector<Benchmark>> LoadBenchmarks(const TaskOptions& options);

}  // namespace pace

#endif  // PACE_TASK_BENCHMARK_H_
