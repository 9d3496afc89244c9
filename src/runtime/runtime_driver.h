// RuntimeDriver: carries out the coordinator's commands on real threads.
//
// Everything that happens arrives in one mailbox and is handled by one thread, so
// nothing but the mailbox is shared. Thread-safety: none.
#ifndef PACE_RUNTIME_RUNTIME_DRIVER_H_
#define PACE_RUNTIME_RUNTIME_DRIVER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/settings.h"
#include "core/clock.h"
#include "execution/run_parts.h"
#include "execution/tool_threads.h"
#include "record/step_clock.h"
#include "rollout/engine.h"
#include "runtime/mailbox.h"
#include "runtime/runtime.h"
#include "runtime/task_thread.h"

namespace pace {

class RuntimeDriver {
 public:
  // All arguments outlive the driver.
  RuntimeDriver(const Settings& settings, const Policy& policy, const TrainingOptions& options);

  Result<TrainingResult> Run();

 private:
  // The wall clock, from where a resumed run left off.
  class RunClock final : public Clock {
   public:
    Seconds Now() const override { return base_ + wall_.Now(); }
    void SetBase(Seconds base) { base_ = base - wall_.Now(); }

   private:
    WallClock wall_;
    Seconds base_{0};
  };
  // An engine has events.
  struct EngineSpoke {
    size_t worker = 0;
  };
  struct Trained {
    Result<MetricList> metrics;
    std::optional<WeightSet> weights;
  };
  struct Evaluated {
    PolicyVersion version;
    Result<std::vector<BenchmarkScore>> scores;
  };
  struct Saved {
    Result<std::string> folder;
  };
  // The tool's reply to a response at rest.
  struct ToolReplied {
    size_t worker = 0;
    MemberId id{};
    PartialResponse response;
    Seconds made{0};
    Result<ToolReply> reply;
  };
  using Message = std::variant<EngineSpoke, Trained, Evaluated, Saved, ToolReplied>;

  Status Prepare();
  Status Begin();
  Status Resume();
  Status MakeEngines();
  Status Loop();

  Status On(EngineSpoke& message);
  Status On(Trained& message);
  Status On(Evaluated& message);
  Status On(Saved& message);
  Status On(ToolReplied& message);
  // What engine `worker` has to say by now.
  Status HearEngine(size_t worker);
  Status OnEngine(size_t worker, RolloutEvent& event);
  void OnRested(size_t worker, MemberId id, PartialResponse response);

  Status Handle(const Event& event);
  Status Execute(const StartGroup& command);
  Status Execute(const AbandonGroup& command);
  Status Execute(const SyncWeights& command);
  Status Execute(const TrainBatch& command);
  Status Execute(const DropGroup& command);
  Status Execute(const Evaluate& command);
  Status Execute(const Checkpoint& command);
  Status Execute(const Stop& command);

  Status SaveIfReady();
  Status Save();
  Status FinishSaves();
  Status GoOnWith(GroupInFlight group);
  void Pulse();
  void WatchForStall(bool something_happened);
  // Of all engines, since the run began.
  Seconds RescoreTime() const;
  Seconds BusyTime() const;
  int64_t MaxGroups() const;

  // Constant after construction.
  const Settings& settings_;
  const Policy& policy_;
  const TrainingOptions& options_;

  RunClock clock_;
  RunParts parts_;
  StepClock step_clock_;

  WeightSet served_weights_;
  PolicyVersion served_version_;
  WeightSet newest_weights_;                                 // of the trainer's version
  std::vector<std::optional<PolicyVersion>> awaited_syncs_;  // by worker

  std::optional<TrainBatch> batch_;
  std::optional<PolicyVersion> checkpoint_;
  int64_t num_evaluations_ = 0;  // under way
  int64_t num_saves_ = 0;        // under way
  bool stopped_ = false;
  bool stop_asked_ = false;
  bool stop_after_save_ = false;
  Seconds rescored_before_{0};
  Seconds busy_before_{0};

  std::chrono::steady_clock::time_point last_event_, last_pulse_, last_stall_note_;
  int64_t pulse_tokens_ = 0;
  double pulse_rate_ = 0;  // tokens per second
  TrainingResult result_;

  Mailbox<Message> mailbox_;
  // The last members: their threads write into the mailbox.
  std::vector<std::unique_ptr<RolloutEngine>> engines_;
  std::unique_ptr<TaskThread> evaluation_thread_;
  std::unique_ptr<TaskThread> training_thread_;
  std::unique_ptr<TaskThread> saving_thread_;
  std::unique_ptr<ToolThreads> tool_threads_;  // null without tools
};

}  // namespace pace

#endif  // PACE_RUNTIME_RUNTIME_DRIVER_H_
