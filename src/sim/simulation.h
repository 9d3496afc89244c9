// RunSimulation: a whole run under virtual time, without tensors.
//
// The real coordinator decides; engines, trainer, tools and failures follow the cost model and
// the workload. The same settings give the same bytes.
//
//   Result<SimResult> result = RunSimulation(*LoadSettings("math-4b", {}), {});
//   result->totals.mean_step;
//
// Thread-safety: a pure function; calls may run at the same time. Stable: docs/library.md.
#ifndef PACE_SIM_SIMULATION_H_
#define PACE_SIM_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "config/settings.h"
#include "control/admission_policy.h"
#include "control/supply_policy.h"
#include "core/clock.h"
#include "core/status.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"

namespace pace {

struct SimOptions {
  // Records the run; null = no records. The caller calls Finish.
  RunWriter* writer = nullptr;
  // Called after every step with the steps done and the steps to do.
  std::function<void(int64_t, int64_t)> progress;
  // Check the coordinator's invariants after every event: slow, for tests.
  bool check_invariants = false;
  // Policies in place of those that the settings name; empty = the settings'.
  std::function<std::unique_ptr<AdmissionPolicy>()> admission = {};
  std::function<std::unique_ptr<SupplyPolicy>()> supply = {};
};

// Means over the second half of the steps, where the run has settled, and totals.
struct SimTotals {
  Seconds time{0};  // of the whole run
  int64_t num_steps = 0;
  Seconds mean_step{0};
  Seconds time_per_trained_prompt{0};  // mean_step over the batch
  StepTimes mean_times;
  double mean_waiting = 0;  // staleness of trained groups
  double mean_generation = 0;
  double mean_occupancy_at_step = 0;
  double rejected_share = 0;  // of the groups drawn
  // The mean of the policy's budget b_j; none where it has no budget.
  std::optional<double> mean_budget = {};

  // Whole run.
  double gpu_seconds = 0;
  int64_t num_trained_groups = 0;
  int64_t num_tokens_generated = 0;
  int64_t num_tokens_never_trained = 0;  // of groups rejected, evicted or lost
  int64_t num_tokens_in_pool = 0;        // finished, and not drawn when the run ended
  int64_t num_interrupted = 0;
  int64_t num_preempted = 0;
  int64_t num_lost_workers = 0;
  double engine_utilisation = 0;  // share of engine time that is not idle
  double trainer_utilisation = 0;

  // The pool as a queue, over the second half of the run's steps: Little's law
  // says occupancy = arrival rate * sojourn.
  double pool_mean_occupancy = 0;  // over time
  double pool_arrival_rate = 0;    // groups per second
  Seconds pool_mean_sojourn{0};

  int64_t num_events = 0;  // that the coordinator handled

  // The share of generated tokens that no step trained on: dropped, or in the pool at the end.
  double UntrainedShare() const {
    if (num_tokens_generated == 0) return 0;
    return static_cast<double>(num_tokens_never_trained + num_tokens_in_pool) /
           static_cast<double>(num_tokens_generated);
  }
};

struct SimResult {
  std::vector<MetricsRow> rows;  // one per step
  SimTotals totals;
};

Result<SimResult> RunSimulation(const Settings& settings, const SimOptions& options);

}  // namespace pace

#endif  // PACE_SIM_SIMULATION_H_
