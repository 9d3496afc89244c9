// What a report calls its runs, their methods, tasks and machines.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_RUN_NAMES_H_
#define PACE_REPORT_RUN_NAMES_H_

#include <string>
#include <vector>

#include "record/run_reader.h"
#include "report/accuracy.h"

namespace pace {

// The folders' names, with as much of their paths as tells them apart; a run
// without a folder has its manifest's name. Never empty, never twice.
std::vector<std::string> DisplayNames(const std::vector<RunData>& runs);

// The method as the person typed it, else what the settings amount to: "PACE",
// "Async", "Stale-4".
std::string MethodShown(const RunData& run);

// "tiny", "Qwen3-4B"; empty for runs without a model.
std::string ModelShown(const RunData& run);
// "list_sum", "gsm8k.jsonl"; empty for runs without a model.
std::string TaskShown(const RunData& run);
// "Neoverse-N1, 2 cores, cpu, 3 threads, torch 2.13.0", as far as the run says.
std::string MachineShown(const RunManifest& manifest);
// "2026-11-16 22:18 UTC"; empty under a virtual clock.
std::string DateShown(const RunManifest& manifest);

// Whether the run's seconds are those of a modelled cluster.
bool IsVirtual(const RunData& run);
// Whether the same settings and seed give the same run.
bool IsReproducible(const RunData& run);

// The benchmarks of each run. One that runs with different tasks share by name
// alone is named with its task, so that nothing averages or compares the two.
std::vector<std::vector<BenchmarkColumns>> BenchmarksOfRuns(const std::vector<RunData>& runs);

}  // namespace pace

#endif  // PACE_REPORT_RUN_NAMES_H_
