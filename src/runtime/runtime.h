// RunTraining: a whole run on this machine, under the wall clock.
//
// Engines generate on their threads while a trainer updates on its own; the
// calling thread drives the coordinator. Weights are copied when a step ends, so
// training goes on at once and engines swap at their next token.
//
//   Result<TrainingResult> result = RunTraining(settings, policy, options);
//
// Thread-safety: one run at a time in a thread; runs share nothing.
#ifndef PACE_RUNTIME_RUNTIME_H_
#define PACE_RUNTIME_RUNTIME_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "execution/checkpoint.h"
#include "execution/evaluator.h"
#include "execution/policy.h"
#include "execution/run_observer.h"
#include "model/weight_set.h"
#include "record/run_writer.h"

namespace pace {

struct TrainingOptions {
  // Where the run is written down; null = nowhere. The caller calls Finish.
  RunWriter* writer = nullptr;
  // Folder of checkpoints; empty = none are written.
  std::string checkpoints = {};
  // Go on from the newest checkpoint there, or from `loaded`, which is emptied.
  bool resume = false;
  LoadedCheckpoint* loaded = nullptr;
  RunObserver* observer = nullptr;
  // Whether to stop: finish the update in flight, save, end. Asked often.
  std::function<bool()> stop = {};
};

struct TrainingResult {
  std::vector<MetricsRow> rows = {};
  std::vector<std::pair<PolicyVersion, std::vector<BenchmarkScore>>> evaluations = {};
  WeightSet weights = {};
  int64_t steps_done = 0;
  bool stopped_early = false;
  Seconds time{0};
};

Result<TrainingResult> RunTraining(const Settings& settings, const Policy& policy,
                                   const TrainingOptions& options);

}  // namespace pace

#endif  // PACE_RUNTIME_RUNTIME_H_
