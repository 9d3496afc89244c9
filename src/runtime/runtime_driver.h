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
#include <variant>
#include <vector>

#include "config/settings.h"
#include "core/clock.h"
#include "execution/run_driver.h"
#include "execution/tool_threads.h"
#include "rollout/engine.h"
#include "runtime/mailbox.h"

namespace pace {

// The wall clock, from where a resumed run left off.
class RunClock final : public Clock {
 public:
  Seconds Now() const override { return base_ + wall_.Now(); }
  void SetBase(Seconds base) { base_ = base - wall_.Now(); }

 private:
  WallClock wall_;
  Seconds base_{0};
};

class RuntimeDriver final : public RunDriver {
 public:
  // All references outlive the driver.
  RuntimeDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
                RunClock& clock, std::unique_ptr<TrainingRun> run);

  Result<RunResult> Run();

 private:
  // An engine has events.
  struct EngineSpoke {
    size_t worker = 0;
  };
  struct Trained {
    Result<TrainedStep> step;
  };
  struct Evaluated {
    PolicyVersion version;
    Result<std::vector<BenchmarkScore>> scores;
  };
  struct Saved {
    Result<std::string> folder;
  };
  // The tool's reply to a paused response.
  struct ToolReplied {
    size_t worker = 0;
    MemberId id{};
    PartialResponse response;
    Seconds made{0};
    Result<ToolReply> reply;
  };
  using Message = std::variant<EngineSpoke, Trained, Evaluated, Saved, ToolReplied>;

  Status Begin();
  Status Resume();
  Status MakeEngines();
  Status Loop();

  Status On(EngineSpoke& message);
  Status On(Trained& message);
  Status On(Evaluated& message);
  Status On(Saved& message);
  Status On(ToolReplied& message);
  // Handles the events of engine `worker` so far.
  Status HearEngine(size_t worker);
  Status OnEngine(size_t worker, RolloutEvent& event);
  void OnRested(size_t worker, MemberId id, PartialResponse response);

  void Submit(size_t worker, GroupRequest request) override;
  GroupInFlight Cancel(size_t worker, GroupId group, bool keep) override;
  Status Sync(size_t worker, const PublishedWeights& weights) override;
  void StartTraining() override;
  Status StartEvaluation(PolicyVersion version) override;
  void StartCheckpoint() override;
  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override;

  Status SaveIfReady();
  Status Save();
  Status FinishSaves();
  void Pulse();
  void WatchForStall(bool something_happened);
  // Of all engines, since the run began.
  Seconds RescoreTime() const;
  Seconds BusyTime() const;
  int64_t MaxGroups() const;

  RunClock& run_clock_;                                      // clock_, to be set
  std::vector<std::optional<PolicyVersion>> awaited_syncs_;  // by worker
  int64_t num_saves_ = 0;                                    // under way
  Seconds rescored_before_{0};
  Seconds busy_before_{0};

  std::chrono::steady_clock::time_point last_event_, last_pulse_, last_stall_note_;
  int64_t pulse_tokens_ = 0;
  double pulse_rate_ = 0;  // tokens per second

  Mailbox<Message> mailbox_;
  // The last members: their threads write into the mailbox.
  std::vector<std::unique_ptr<RolloutEngine>> engines_;
  const std::unique_ptr<TaskThread> training_thread_;
  TaskThread evaluation_thread_;
  TaskThread saving_thread_;
  std::unique_ptr<ToolThreads> tool_threads_;  // null without tools
};

}  // namespace pace

#endif  // PACE_RUNTIME_RUNTIME_DRIVER_H_
