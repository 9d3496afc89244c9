// LabDriver: carries out the coordinator's commands under virtual time, for real.
//
// The loop of the simulator with real engines and a real trainer. Training is
// computed on a thread of its own where the setup allows; it counts when its virtual
// time is over, so threads cannot change anything.
//
// A checkpoint is a barrier: passes end, engines pause, everything is saved, and
// the run continues from what was saved, in new engines. So a run that was resumed
// and one that was never stopped are the same run.
//
// Thread-safety: none.
#ifndef PACE_LAB_LAB_DRIVER_H_
#define PACE_LAB_LAB_DRIVER_H_

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/cost_model.h"
#include "cluster/event_queue.h"
#include "cluster/tool_pool.h"
#include "config/settings.h"
#include "core/clock.h"
#include "execution/run_driver.h"
#include "lab/lab_engine.h"

namespace pace {

class LabDriver final : public RunDriver {
 public:
  // All references outlive the driver.
  LabDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
            const CostModel& costs, VirtualClock& clock, std::unique_ptr<TrainingRun> run);

  Result<RunResult> Run();

 private:
  using Training = std::future<Result<TrainedStep>>;
  // A tool's reply, and when the run receives it.
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
  // A run that continues from a checkpoint does not know of them.
  void ForgetAbandonedCalls();

  void Submit(size_t worker, GroupRequest request) override;
  GroupInFlight Cancel(size_t worker, GroupId group, bool keep) override;
  Status Sync(size_t worker, const PublishedWeights& weights) override;
  void StartTraining() override;
  Status StartEvaluation(PolicyVersion version) override;
  void StartCheckpoint() override;
  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override;

  // An event whose syncs the trainer waits for.
  Status HandleAtStepEnd(const Event& event);
  void StartTrainingIfReady();
  Status SaveIfAtRest();
  Status MakeEngines();
  // In fresh engines, these responses.
  Status Continue(std::vector<GroupInFlight> in_flight);

  bool AllAtRest() const;
  int64_t MaxGroups() const;
  StepPart CurrentPart() const;
  void Touch(size_t index);
  int64_t TimerSource() const { return settings_.cluster.NumEngines(); }
  int64_t ToolSource() const { return TimerSource() + 1; }

  // Constant after construction.
  const CostModel& costs_;
  const bool colocated_;
  Settings engine_settings_;  // with the cluster's slots

  VirtualClock& virtual_clock_;  // clock_, to be advanced
  EventQueue queue_;
  std::vector<std::unique_ptr<LabEngine>> engines_;  // engine i is worker i
  ToolPool tool_pool_;
  std::vector<PendingCall> calls_;  // by due time, then by response

  bool finishing_step_ = false;  // the trainer waits for syncs that are sent now
  // Until when the trainer sends weights. Engines take them at a boundary of
  // their own, which it does not wait for.
  std::optional<Seconds> sent_at_;
  std::optional<Seconds> trained_at_;
  std::vector<PolicyVersion> evaluated_;  // the coordinator is to be told
  std::optional<Seconds> checkpointed_at_;
  // Of all engines, since the last step.
  Seconds rescoring_{0};
  Seconds busy_{0};
  Training training_;  // the last member: it uses the others, and waits when destroyed
};

}  // namespace pace

#endif  // PACE_LAB_LAB_DRIVER_H_
