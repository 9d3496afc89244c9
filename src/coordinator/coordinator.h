// The Coordinator decides what workers and trainer do next.
//
// It is a pure state machine: events in, commands out. No threads, no clock, no I/O, no
// tensors. The simulator, the lab and the runtime drive this one class, so what holds in one
// holds in all; the proofs are in docs/method.md.
//
//   const int64_t batch = settings.batch.num_groups;
//   Coordinator coordinator(CoordinatorOptions::Of(settings),
//                           MakeAdmissionPolicy(settings.admission, batch, seed),
//                           MakeSupplyPolicy(settings.supply, batch));
//   for (const Command& command : coordinator.Handle(WorkerJoined{worker, 64})) Execute(command);
//
// The contract of a driver. It delivers the events of one worker in order and carries out the
// commands to one worker in order (SyncWeights precedes the StartGroup that depends on it).
// Every StartGroup ends in ResponseFinished for each member, in GroupFailed or in WorkerLost.
// Every SyncWeights ends in WorkerSynced or WorkerLost. Every TrainBatch, Evaluate and
// Checkpoint is answered with its Finished event. Deadlines are up to the driver. Late events
// of a group that is no longer running are ignored.
//
// Thread-safety: none; call it from one thread at a time. Stable: docs/library.md.
#ifndef PACE_COORDINATOR_COORDINATOR_H_
#define PACE_COORDINATOR_COORDINATOR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/admission_policy.h"
#include "control/progress_guard.h"
#include "control/supply_policy.h"
#include "coordinator/events.h"
#include "coordinator/group_table.h"
#include "coordinator/options.h"
#include "coordinator/prompt_queue.h"
#include "coordinator/snapshot.h"
#include "coordinator/throughput.h"
#include "coordinator/worker_table.h"
#include "pool/pool_state.h"

namespace pace {

// Is told of decisions as they are made. Must not call the coordinator.
class CoordinatorObserver {
 public:
  virtual ~CoordinatorObserver() = default;
  // `served` is Coordinator::served at that moment, `pool` what the step may draw from.
  virtual void OnStepBegan(const StepPlan&, std::optional<PolicyVersion> /*served*/,
                           const PoolState& /*pool*/) {}
  virtual void OnGroupAssembled(const GroupSummary&) {}
  // A bound of the pool was passed, and this group left it without being drawn.
  virtual void OnGroupEvicted(GroupId) {}
  virtual void OnGroupDrawn(const GroupSummary&, const Decision&,
                            std::optional<PolicyVersion> /*served*/) {}
};

class Coordinator {
 public:
  // `observer` may be null; otherwise it outlives the coordinator.
  Coordinator(const CoordinatorOptions& options, std::unique_ptr<AdmissionPolicy> admission,
              std::unique_ptr<SupplyPolicy> supply, CoordinatorObserver* observer = nullptr);

  // Whether Handle may be called with this event now; an error names the field and the rule.
  // For events from files; a driver that keeps its contract need not call it.
  [[nodiscard]] Status Validate(const Event& event) const;

  // Takes one event and returns the commands to carry out, in order; none after a failure.
  // REQUIRES: Validate(event).ok()
  std::vector<Command> Handle(const Event& event);

  // Why the admission policy can decide no more; policies of this program always can.
  [[nodiscard]] Status failure() const;
  bool failed() const { return admission_->failure() != nullptr; }
  // One line: what the next step waits for.
  [[nodiscard]] std::string WhyWaiting() const;

  // The whole state: a restored coordinator behaves as this one would.
  [[nodiscard]] CoordinatorSnapshot Save() const;
  // Checks the whole snapshot before it changes anything. REQUIRES: no event was handled yet.
  Status Restore(const CoordinatorSnapshot& snapshot);
  // The commands that are not answered yet, for the driver to carry out after Restore.
  [[nodiscard]] std::vector<Command> Owed() const;

  // Checks the invariants of docs/method.md; ends the process when one is broken.
  void CheckInvariants() const;

  PolicyVersion version() const { return version_; }
  // Events handled since the run began, including those before a restored snapshot.
  int64_t num_events() const { return num_events_; }
  bool stopped() const { return stopped_; }
  bool training() const { return training_; }
  bool gathering() const { return gathering_; }  // a step has begun and waits for groups
  SupplyView supply_view() const;
  std::optional<double> supply_limit() const;  // of outstanding groups, where it varies
  const PoolState& pool() const { return pool_; }
  // 1 for the first dispatch of the group's prompt and for an unknown group, 2 for a first retry.
  int64_t AttemptOf(GroupId group) const;
  const Throughput& throughput() const { return throughput_; }
  // Verdicts of the step begun last.
  int64_t num_offered() const { return num_offered_; }
  int64_t num_rejected_in_step() const { return guard_.num_rejected(); }
  int64_t num_guarded() const { return guard_.num_guarded(); }
  // u: the oldest version that a group started now could sample from; syncs in flight are done.
  std::optional<PolicyVersion> served() const { return workers_.OldestPromised(); }

 private:
  using Commands = std::vector<Command>;

  // Each returns whether Advance must run.
  bool On(const WorkerJoined& event, Commands& out);
  bool On(const WorkerLost& event, Commands& out);
  bool On(const ResponseFinished& event, Commands& out);
  bool On(const GroupFailed& event, Commands& out);
  bool On(const WorkerSynced& event, Commands& out);
  bool On(const StepFinished& event, Commands& out);
  bool On(const EvaluationFinished& event, Commands& out);
  bool On(const CheckpointFinished& event, Commands& out);
  bool On(const StopRequested& event, Commands& out);
  bool On(const RunResumed& event, Commands& out);

  // Does everything that the state now allows, in the order that commands must have.
  void Advance(Commands& out);
  void SyncWorkers(Commands& out);
  void SyncWorker(WorkerId worker, Commands& out);
  void ReturnSyncedCredits();
  void BeginStep(Commands& out);
  void Draw(Commands& out);
  // Judges a group that was drawn.
  void Offer(const GroupSummary& group, Commands& out);
  void Reject(const Eviction& eviction, Commands& out);
  void SendBatch(Commands& out);
  void AbandonRunning(Commands& out);
  void StartGroups(Commands& out);
  void FinishIfDone(Commands& out);
  void Lose(GroupId group, bool retry = true);
  void ReturnPrompt(const GroupRecord& record, bool rejected);
  bool NothingOutstanding() const;
  bool LastStepDone() const { return version_.step() >= options_.num_steps; }
  Status ValidateResponse(const ResponseFinished& event) const;

  // Constant after construction.
  const CoordinatorOptions options_;
  const std::unique_ptr<AdmissionPolicy> admission_;
  const std::unique_ptr<SupplyPolicy> supply_;
  CoordinatorObserver* const observer_;

  ProgressGuard guard_;
  WorkerTable workers_;
  GroupTable groups_;
  PromptQueue prompts_;
  PoolState pool_;
  Throughput throughput_;

  PolicyVersion version_;    // of the trainer
  PolicyVersion published_;  // the newest sent to workers
  int64_t num_events_ = 0;
  bool started_ = false;
  bool gathering_ = false;
  bool training_ = false;
  bool checkpointing_ = false;
  bool stop_requested_ = false;
  bool final_checkpoint_done_ = false;
  bool stopped_ = false;
  bool supply_limited_ = false;            // see SupplyView
  std::vector<PolicyVersion> evaluating_;  // in the order of their commands

  std::vector<GroupId> selected_;           // the batch so far, or in training
  std::deque<AwaitingSync> awaiting_sync_;  // trained groups that hold credits
  int64_t num_awaiting_sync_ = 0;
  int64_t num_offered_ = 0;
  int64_t num_trained_ = 0;
  int64_t num_rejected_ = 0;
  int64_t num_lost_ = 0;
};

}  // namespace pace

#endif  // PACE_COORDINATOR_COORDINATOR_H_
