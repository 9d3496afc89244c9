// What a report says about each run in numbers and sentences.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_SUMMARY_H_
#define PACE_REPORT_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/run_reader.h"

namespace pace {

// How a run chooses what it trains on.
enum class RunKind {
  kSync,        // everything, strictly on-policy
  kUnfiltered,  // everything, asynchronous
  kFiltered,    // an admission policy rejects groups
};

// Means over the settled half of a run's steps, totals over all of it. What
// its metrics lack stays empty.
struct RunSummary {
  size_t run = 0;      // its place in the report
  std::string name;    // unique in the report
  std::string method;  // as MethodLabel has it
  std::string title;   // as readers see it
  RunKind kind = RunKind::kFiltered;
  size_t num_steps = 0;
  int64_t batch = 0;  // groups per step
  std::optional<double> waiting, waiting_assembly, waiting_pool, generation, effective, lag;
  std::optional<double> occupancy;
  std::optional<double> rejected_share;  // of the groups drawn
  std::optional<double> budget;          // the share it planned to reject
  std::optional<double> step_seconds;
  std::optional<double> seconds_per_prompt;      // step_seconds over the batch
  std::optional<double> gpu_seconds_per_prompt;  // none where it ran on no GPU
  std::optional<double> tokens_per_second;
  std::optional<double> equal_rewards;  // share of trained groups with one reward
  std::optional<double> truncated;      // share of trained responses
  bool is_virtual = false;              // its seconds are a modelled cluster's
  std::optional<double> tokens_generated;
  // Of the tokens generated: thrown away, or left in the pool at the end.
  std::optional<double> never_trained_share;
  std::optional<double> length_offered, length_trained;
  std::optional<double> reward_offered, reward_trained;
  std::optional<double> turns_offered, turns_trained;
  // Shares of correct responses, the plain mean over the run's benchmarks:
  // before the first step, and in the last evaluation.
  std::optional<double> accuracy_before, accuracy_after;
  double accuracy_half_width = 0;  // of the 95 % interval of accuracy_after
  std::string benchmarks;          // "sums", "6 benchmarks"
  std::vector<std::string> benchmark_names;

  // Whether each group's score and prefix score were computed.
  bool has_scores = true;
};

// The method of a run as `pace sim` and compare.reference name it: sync, async,
// effective, raw, stale-8.
std::string MethodLabel(const Settings& settings);

std::vector<RunSummary> Summarize(const std::vector<RunData>& runs);

// The run that others are compared with: the first asynchronous unfiltered
// one, else the first unfiltered one.
std::optional<size_t> BaselineOf(const std::vector<RunSummary>& summaries);

// One paragraph per run, in plain words.
std::vector<std::string> SummarySentences(const std::vector<RunSummary>& summaries);

// One row per run, as an HTML table.
std::string SummaryTable(const std::vector<RunSummary>& summaries);

}  // namespace pace

#endif  // PACE_REPORT_SUMMARY_H_
