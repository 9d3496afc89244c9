// Driver: carries out the coordinator's commands under virtual time.
//
// One loop: the engine or timer that is due acts, the result becomes an event, the coordinator
// answers with commands, and the driver carries them out. It makes no decision about groups.
//
// Thread-safety: none.
#ifndef PACE_SIM_DRIVER_H_
#define PACE_SIM_DRIVER_H_

#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "cluster/cost_model.h"
#include "cluster/event_queue.h"
#include "cluster/tool_pool.h"
#include "config/settings.h"
#include "coordinator/coordinator.h"
#include "core/clock.h"
#include "core/random.h"
#include "record/step_clock.h"
#include "sim/engine.h"
#include "sim/group_store.h"
#include "sim/recorder.h"
#include "sim/response.h"
#include "sim/simulation.h"
#include "sim/workload.h"

namespace pace {

// An event at a known time that is not an engine's.
enum class TimerKind {
  kTrained,
  kToolReturned,
  kEngineLost,
  kEngineBack,
  kCheckpointed,
  kEvaluated
};
struct Timer {
  Seconds time{0};
  int64_t order = 0;  // in which timers were set, for equal times
  TimerKind kind = TimerKind::kTrained;
  GroupId group{};             // kToolReturned
  ResponseIndex response = 0;  // kToolReturned
  size_t engine = 0;           // kEngineLost, kEngineBack
  PolicyVersion version{};     // kTrained, kCheckpointed, kEvaluated
  bool operator>(const Timer& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

class Driver {
 public:
  // All arguments outlive the driver.
  Driver(const Settings& settings, const SimOptions& options, const CostModel& costs,
         const Workload& workload);

  // Runs to the end.
  Result<SimResult> Run();

 private:
  struct alignas(64) EngineSlot {
    WorkerId worker;
    bool blocks_trainer = false;  // its sync is one the trainer waits for
    bool counted_busy = false;
    bool counted_rescoring = false;
    std::optional<Engine> engine;  // none while lost
  };

  void Handle(const Event& event);
  void Execute(const StartGroup& command);
  void Execute(const AbandonGroup& command);
  void Execute(const SyncWeights& command);
  void Execute(const TrainBatch& command);
  void Execute(const DropGroup& command);
  void Execute(const Evaluate& command);
  void Execute(const Checkpoint& command);
  void Execute(const Stop&) { stopped_ = true; }

  void ActEngine(size_t index);
  void EndStretch(ResponseIndex response);
  void FinishResponse(ResponseIndex response);
  void ActTimer();
  void FinishStep(PolicyVersion step);
  void JoinEngine(size_t index);
  void LoseEngine(size_t index);
  // Removes a running group and its responses.
  void DiscardGroup(size_t slot, bool keep_prefix);
  void StartTrainingIfReady();

  void SetTimer(Seconds time, Timer timer);
  // Updates queue and counts after an engine's change.
  void Touch(size_t index);
  StepPart CurrentPart() const;
  int64_t MaxGroups() const;
  Engine& EngineOf(size_t index) { return *engines_[index].engine; }
  size_t TimerSource() const { return engines_.size(); }

  // Constant after construction.
  const Settings& settings_;
  const SimOptions& options_;
  const CostModel& costs_;
  const Workload& workload_;
  const EngineOptions engine_options_;
  const CounterRandom failures_;
  const bool colocated_;

  VirtualClock clock_;
  GroupStore groups_;
  Recorder recorder_;
  Coordinator coordinator_;
  EventQueue queue_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<EngineSlot> engines_;
  std::vector<size_t> engine_of_worker_;
  ToolPool tools_;
  StepClock step_clock_;
  Event event_;  // reused for the millions of finished responses

  bool stopped_ = false;
  bool training_ = false;
  bool checkpointing_ = false;
  bool finishing_step_ = false;  // the trainer waits for syncs sent now
  std::vector<size_t> batch_;    // slots of the current TrainBatch
  bool batch_pending_ = false;
  PolicyVersion batch_step_;
  int64_t num_blocking_syncs_ = 0;
  int64_t num_busy_ = 0, num_rescoring_ = 0, num_paused_ = 0;
  int64_t next_timer_ = 0;

  // Of lost engines.
  int64_t lost_tokens_ = 0, lost_interrupted_ = 0, lost_preempted_ = 0;
  Seconds lost_rescore_{0}, lost_idle_{0};
  // Since the run began, and at the end of the previous step.
  int64_t num_tokens_never_trained_ = 0, num_trained_groups_ = 0, num_lost_workers_ = 0;
  int64_t step_tokens_ = 0, step_interrupted_ = 0, losses_in_step_ = 0;
  Seconds step_rescore_{0}, step_idle_{0};
  int64_t num_events_ = 0;
  Status failure_;
};

}  // namespace pace

#endif  // PACE_SIM_DRIVER_H_
