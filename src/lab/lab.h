// RunLab: a whole run under virtual time, with real learning.
//
// The real coordinator, engines and trainer; the clock is the cluster model's.
// The same settings give the same weights and the same records to the bit, also
// across numbers of threads and across a kill and a resume.
//
//   Result<LabResult> result = RunLab(settings, policy, {});
//
// Thread-safety: a function of its arguments; calls may run side by side.
#ifndef PACE_LAB_LAB_H_
#define PACE_LAB_LAB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "execution/checkpoint.h"
#include "execution/evaluator.h"
#include "execution/policy.h"
#include "execution/run_observer.h"
#include "model/weight_set.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"

namespace pace {

struct LabOptions {
  // Where the run is written down; null = nowhere. The caller calls Finish.
  RunWriter* writer = nullptr;
  // Folder of checkpoints; empty = none are written.
  std::string checkpoints = {};
  // Go on from the newest checkpoint there, or from `loaded`, which is emptied.
  bool resume = false;
  LoadedCheckpoint* loaded = nullptr;
  // 2 = training runs beside generation; the results do not change.
  int64_t num_threads = 1;
  RunObserver* observer = nullptr;
  // Whether to stop; asked after every step. The run then saves and ends. A checkpoint
  // that is due anyway serves; any other is marked as one of a stop.
  std::function<bool()> stop = {};
};

struct LabResult {
  std::vector<MetricsRow> rows = {};
  std::vector<std::pair<PolicyVersion, std::vector<BenchmarkScore>>> evaluations = {};
  WeightSet weights = {};
  int64_t steps_done = 0;
  bool stopped_early = false;
  Seconds time{0};
};

// What the lab cannot do is an error that names the setting. RunLab asks it.
Status CheckLabSettings(const Settings& settings);

Result<LabResult> RunLab(const Settings& settings, const Policy& policy, const LabOptions& options);

}  // namespace pace

#endif  // PACE_LAB_LAB_H_
