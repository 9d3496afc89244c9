// The benchmarks of `pace bench`, all of one shape: a name, the options that it takes, and
// a function that measures and fills in a report.
//
//   BenchReport report;
//   PACE_RETURN_IF_ERROR(FindBench("rollout")->run({.repetitions = 5}, report));
//   std::puts(report.Json("rollout").c_str());
//
// A missed limit is not an error: the report says `"ok": false`, as a whole and for the
// measurement. A peer that cannot be measured is not an error either: the report says why.
//
// Thread-safety: none; a benchmark wants the machine, or the GPU, to itself.
#ifndef PACE_BENCH_BENCHES_H_
#define PACE_BENCH_BENCHES_H_

#include <array>
#include <span>
#include <string_view>

#include "bench/bench_report.h"
#include "core/status.h"

namespace pace {

// What each measures is said at the top of its source.
Status RunCheckpointBench(const BenchOptions& options, BenchReport& report);
Status RunControllerBench(const BenchOptions& options, BenchReport& report);
Status RunDecodeBench(const BenchOptions& options, BenchReport& report);
Status RunMethodBench(const BenchOptions& options, BenchReport& report);
Status RunRankBench(const BenchOptions& options, BenchReport& report);
Status RunRolloutBench(const BenchOptions& options, BenchReport& report);
Status RunSandboxBench(const BenchOptions& options, BenchReport& report);
Status RunServeBench(const BenchOptions& options, BenchReport& report);
Status RunTokenizerBench(const BenchOptions& options, BenchReport& report);
Status RunTrainBench(const BenchOptions& options, BenchReport& report);
// RunMethodBench and RunTrainBench on a GPU.
Status RunGpuMethodBench(const BenchOptions& options, BenchReport& report);
Status RunGpuTrainBench(const BenchOptions& options, BenchReport& report);

struct Bench {
  std::string_view name;
  std::string_view what;  // for --help
  // Flags that it takes besides --repetitions and --json, and "KEY=VALUE" if it takes settings; the
  // rest are empty.
  std::array<std::string_view, 8> flags;
  Status (*run)(const BenchOptions&, BenchReport&);

  bool Takes(std::string_view flag) const;
};
// By name.
std::span<const Bench> Benches();
// Null where there is none of that name.
const Bench* FindBench(std::string_view name);

}  // namespace pace

#endif  // PACE_BENCH_BENCHES_H_
