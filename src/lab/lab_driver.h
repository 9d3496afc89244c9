// LabDriver: carries out the coordinator's commands under virtual time, for real.
//
// The loop of the simulator with real engines and a real trainer. Training is
// computed on a thread of its own where options allow; it counts when its virtual
// time is over, so threads cannot change anything.
//
// A checkpoint is a barrier: passes end, engines rest, everything is saved, and
// the run goes on from what was saved, in new engines. So a run that was resumed
// and one that was never stopped are the same run.
//
// Thread-safety: none.
#ifndef PACE_LAB_LAB_DRIVER_H_
#define PACE_LAB_LAB_DRIVER_H_

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cost_model.h"
#include "cluster/event_queue.h"
#include "cluster/tool_pool.h"
#include "config/settings.h"
#include "core/clock.h"
#include "execution/run_parts.h"
#include "lab/lab.h"
#include "lab/lab_engine.h"
#include "record/step_clock.h"

namespace pace {

class LabDriver {
 public:
  // Settings, policy and options outlive the driver.
  LabDriver(const Settings& settings, const Policy& policy, const LabOptions& options,
            CostModel costs);
  ~LabDriver();

  Result<LabResult> Run();

 private:
  using Training = std::future<Result<MetricList>>;
  // What a tool has said already, and when the run hears it.
  struct PendingCall {
    CallInFlight call;
    ToolReply reply;
  };

  Status Begin();
  Status Resume();
  Status Act();
  Status ActEngine(size_t index);
  Status FinishStep();
  Status FinishCheckpoint();
  // Tools: the program runs at once and for real; its time is the workload's.
  Status OnRested(MemberId id);
  Status MakeCall(CallInFlight call, const ToolCall& wanted);
  Status FinishCall();
  Status RestoreCalls(const RunCheckpoint& run);
  // As a run that goes on from a checkpoint does not know of them.
  void ForgetAbandonedCalls();

  Status Handle(const Event& event);
  Status Execute(const StartGroup& command);
  Status Execute(const AbandonGroup& command);
  Status Execute(const SyncWeights& command);
  Status Execute(const TrainBatch& command);
  Status Execute(const DropGroup& command);
  Status Execute(const Evaluate& command);
  Status Execute(const Checkpoint& command);
  Status Execute(const Stop& command);

  void StartTrainingIfReady();
  Status SaveIfAtRest();
  // Fresh engines that go on from these responses.
  Status RebuildEngines(std::vector<GroupInFlight> in_flight);
  Result<std::unique_ptr<EngineCore>> MakeCore() const;
  std::unique_ptr<LabEngine> MakeLabEngine(std::unique_ptr<EngineCore> core) const;
  Status ServeWeights(PolicyVersion version, const WeightSet& weights, const Decoder& decoder);

  bool AllAtRest() const;
  int64_t MaxGroups() const;
  StepPart CurrentPart() const;
  void Touch(size_t index);
  int64_t TimerSource() const { return static_cast<int64_t>(engines_.size()); }
  int64_t ToolSource() const { return TimerSource() + 1; }

  // Constant after construction.
  const Settings& settings_;
  const Policy& policy_;
  const LabOptions& options_;
  const CostModel costs_;
  const bool colocated_;
  Settings engine_settings_;  // with the cluster's slots

  VirtualClock clock_;
  RunParts parts_;
  EventQueue queue_;
  std::vector<std::unique_ptr<LabEngine>> engines_;  // engine i is worker i
  StepClock step_clock_;
  ToolPool tool_pool_;
  std::vector<PendingCall> calls_;  // by due time, then by response

  // The weights that syncs hand out.
  PolicyVersion served_version_;
  WeightSet served_weights_;
  std::shared_ptr<const DecoderWeights> served_;

  bool stopped_ = false;
  bool stop_asked_ = false;
  bool stop_after_save_ = false;
  bool finishing_step_ = false;  // syncs sent now are the ones the trainer waits for
  // Until when the trainer hands out weights. Engines take them at a boundary of
  // their own, which it does not wait for.
  std::optional<Seconds> sent_at_;
  std::optional<TrainBatch> batch_;  // to train on, or in training
  Training training_;
  std::optional<Seconds> trained_at_;
  std::vector<PolicyVersion> evaluated_;  // to be told
  std::optional<PolicyVersion> checkpoint_;
  std::optional<Seconds> checkpointed_at_;
  // Of all engines, since the last step.
  Seconds rescoring_{0};
  Seconds busy_{0};
  LabResult result_;
};

}  // namespace pace

#endif  // PACE_LAB_LAB_DRIVER_H_
