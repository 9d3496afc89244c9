// StepMetrics gathers one training step into the row that metrics.jsonl holds.
//
// A driver tells it what was decided and what the clock said; it knows neither
// coordinator nor files. Metric names are a released surface: docs/run-directory.md.
//
//   StepMetrics metrics;
//   metrics.BeginStep(plan);
//   metrics.AddDraw(group, decision, payload);
//   MetricsRow row = metrics.EndStep(times, totals);
//
// Thread-safety: none.
#ifndef PACE_RECORD_STEP_METRICS_H_
#define PACE_RECORD_STEP_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/decision.h"
#include "core/staleness.h"

namespace pace {

// What the payload of a drawn group says: means over its members.
struct PayloadStats {
  double length = 0;  // policy tokens
  double reward = 0;  // for 0/1 rewards the pass rate
  double turns = 1;
  // Of groups with real responses: whether every member has the same reward, and
  // the share of members that hit the length limit.
  std::optional<bool> equal_rewards = {};
  std::optional<double> truncated = {};
  // Of responses that may use a tool, per response; none elsewhere.
  struct Tools {
    double calls = 0;
    double failures = 0;
    double seconds = 0;
  };
  std::optional<Tools> tools = {};
};

// Where a step's time went. The first five parts do not overlap and sum to
// `step`; rescore_hidden ran beside them.
struct StepTimes {
  Seconds step{0};
  Seconds wait_data{0};
  Seconds train{0};
  Seconds sync{0};
  Seconds rescore_visible{0};
  Seconds other{0};
  Seconds rescore_hidden{0};
  // In which engines generated, the mean over engines; none where nobody measured.
  std::optional<Seconds> engines_busy = {};
};

// Running totals and rates at the end of a step, as the driver knows them.
struct StepTotals {
  Seconds time{0};                          // of the driver's clock
  std::optional<double> gpu_seconds = {};   // all GPUs, since the run began; none without a GPU
  int64_t num_trained_groups = 0;           // since the run began
  int64_t num_tokens_generated = 0;         // since the run began
  int64_t num_tokens_never_trained = 0;     // of groups rejected, evicted or lost
  int64_t num_tokens_in_pool = 0;           // of finished groups that no step has drawn yet
  int64_t num_interrupted = 0;              // responses interrupted in this step
  int64_t num_step_tokens = 0;              // generated in this step
  int64_t pool_bytes = 0;                   // as the step began
  std::optional<double> supply_limit = {};  // groups that may be outstanding, where it changes
  double produced = 0;                      // groups per step, five-step window
  double consumed = 0;
};

// Names with values, in the order they are written. Absent = not known.
using MetricsRow = std::vector<std::pair<std::string, double>>;

// The value under a name, if the row has it.
std::optional<double> Find(const MetricsRow& row, std::string_view name);

class StepMetrics {
 public:
  struct Spread {
    double sum = 0, max = 0;
    int64_t count = 0;
    void Add(double value);
    double Mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
  };
  // What the draws of the step under way have added up to.
  struct State {
    StepPlan plan = {};
    int64_t num_offered = 0, num_rejected = 0, num_guarded = 0, num_scored = 0;
    // Of trained groups.
    Spread waiting, waiting_assembly, waiting_pool, generation, effective, lag, prefix;
    Spread length_offered, length_trained, reward_offered, reward_trained;
    Spread turns_offered, turns_trained;
    Spread equal_offered, equal_trained, truncated_offered, truncated_trained;
    Spread tool_calls, tool_failures, tool_seconds;  // of groups offered
  };

  void BeginStep(const StepPlan& plan);
  void AddDraw(const GroupSummary& group, const Decision& decision, const PayloadStats& payload);
  // The finished row, first `step` and `time`. Ready for the next BeginStep.
  MetricsRow EndStep(const StepTimes& times, const StepTotals& totals);

  const State& state() const { return state_; }
  void Restore(const State& state) { state_ = state; }

 private:
  State state_;
};

}  // namespace pace

#endif  // PACE_RECORD_STEP_METRICS_H_
