// A training run as its caller sees it: what it needs, what it reports, what it returns.
// The lab (virtual time) and the runtime (wall clock) share this interface:
//
//   Result<RunResult> result = RunLab(settings, policy, {.observer = &view});
//   Result<RunResult> trained = RunTraining(settings, policy, {.writer = writer.get()});
//
// Thread-safety: plain data; an observer is called from the driver's thread alone.
#ifndef PACE_EXECUTION_RUN_H_
#define PACE_EXECUTION_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "control/supply_policy.h"
#include "core/clock.h"
#include "core/status.h"
#include "core/version.h"
#include "execution/checkpoint.h"
#include "execution/evaluator.h"
#include "execution/gpu_plan.h"
#include "execution/policy.h"
#include "execution/tool_executor.h"
#include "judge/reward_pool.h"
#include "model/weight_set.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"

namespace pace {

class Communicator;
class Decoder;

// The state of a run between two steps.
struct RunPulse {
  Seconds time{0};
  int64_t occupancy = 0;  // groups in the pool
  double tokens_per_second = 0;
  std::string waiting = {};  // what the next step waits for; empty while training
};

// Told how a run proceeds.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnStep(int64_t /*steps_done*/, const MetricsRow& /*row*/) {}
  // A step drew a group and decided on it.
  virtual void OnGroupDrawn(const GroupSummary&, const Decision&, const PayloadStats&) {}
  // The weights of this version were prepared, once, for all engines.
  virtual void OnPublished(PolicyVersion) {}
  virtual void OnEvaluation(PolicyVersion, const std::vector<BenchmarkScore>&) {}
  virtual void OnCheckpoint(const std::string& /*folder*/) {}
  virtual void OnPulse(const RunPulse&) {}
  // One line from RunWarnings.
  virtual void OnWarning(const std::string& /*text*/) {}
  // Something a person should know: a checkpoint that was skipped, a stall.
  virtual void OnNote(const std::string& /*note*/) {}
};

// What a run uses of this machine.
struct RunResources {
  std::shared_ptr<ToolExecutor> executor = {};  // null without tools
  std::shared_ptr<RewardPool> rewards = {};     // null where pace itself verifies

  // Starts the sandbox and the processes of rewards and plans the GPU, where the settings ask
  // for them. `share`: who else uses that GPU.
  static Result<RunResources> Acquire(const Settings& settings, const Policy& policy,
                                      const GpuShare& share = {});
};

// The processes that compute task.verifier = python:FILE:FUNCTION; null where it names a mode.
Result<std::shared_ptr<RewardPool>> OpenRewards(const Settings& settings);

struct RunSetup {
  // Receives the records; null = none are written. The caller calls Finish.
  RunWriter* writer = nullptr;
  // Folder of checkpoints; empty = none are written.
  std::string checkpoints = {};
  // Continue from the newest checkpoint there, or from `loaded`, which is emptied.
  bool resume = false;
  LoadedCheckpoint* loaded = nullptr;
  // The other ranks are in FollowTrainer (train/trainer.h); null: one rank.
  Communicator* ranks = nullptr;
  // None: the run acquires its own.
  std::optional<RunResources> resources = {};
  // Replaces supply.policy.
  std::function<std::unique_ptr<SupplyPolicy>()> make_supply = {};
  // Runtime: wraps the decoders of engines in this process, in tests.
  std::function<std::unique_ptr<Decoder>(int64_t engine, std::unique_ptr<Decoder>)> wrap_decoder =
      {};
  // Lab: 2 = training is computed beside generation; the results do not change.
  int64_t num_threads = 1;
  RunObserver* observer = nullptr;
  // Whether to stop: finish the update in flight, save, end. Asked after every step, in
  // the runtime also in between. A checkpoint that is due anyway serves; in the lab any
  // other is marked as one of a stop.
  std::function<bool()> stop = {};
};

struct RunResult {
  std::vector<MetricsRow> rows = {};  // of the steps done by this call
  std::vector<std::pair<PolicyVersion, std::vector<BenchmarkScore>>> evaluations = {};
  WeightSet weights = {};
  int64_t steps_done = 0;  // since the run began
  bool stopped_early = false;
  Seconds time{0};  // since the run began
};

// Checks a run before anything of it is made: its tasks and benchmarks can be read, its
// first prompt rendered, its responses held, its loss trained.
Status CheckRun(const Settings& settings, const Policy& policy);

}  // namespace pace

#endif  // PACE_EXECUTION_RUN_H_
