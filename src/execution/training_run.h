// TrainingRun: everything of a run but time and threads.
//
// The lab and the runtime differ in when things happen and on which thread; what
// happens is here: the coordinator, the payload of groups, rewards, records,
// checkpoints. A driver (run_driver.h) turns commands into work and work into events:
//
//   for (const Command& command : run.Handle(event)) ...
//   StartGroup    -> run.Start(command, version)  a request for the worker's engine
//   a response    -> run.Finish(response)         the event to handle
//   one pauses    -> run.CallOf, then run.Reply with what the tool said
//   TrainBatch    -> run.BatchOf(command)         what the trainer trains on
//   trained       -> run.EndStep(...), then Handle(StepFinished)
//   DropGroup     -> run.Drop(command)
//   AbandonGroup  -> run.Abandon(command, unfinished)
//
// Thread-safety: none; it belongs to the driver's thread. Trainer, evaluator and tool
// executor may each be used by another thread.
#ifndef PACE_EXECUTION_TRAINING_RUN_H_
#define PACE_EXECUTION_TRAINING_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "coordinator/coordinator.h"
#include "core/clock.h"
#include "core/status.h"
#include "execution/checkpoint.h"
#include "execution/evaluator.h"
#include "execution/policy.h"
#include "execution/prompt_source.h"
#include "execution/run.h"
#include "execution/run_journal.h"
#include "execution/tool_executor.h"
#include "execution/trainer_state.h"
#include "execution/trajectory.h"
#include "rollout/request.h"
#include "train/trainer.h"

namespace pace {

// A run as a checkpoint left it.
struct ResumedRun {
  std::string folder = {};
  RunCheckpoint checkpoint = {};
  WeightSet served = {};  // that engines start with
};

class TrainingRun {
 public:
  // All references outlive the run.
  static Result<std::unique_ptr<TrainingRun>> Create(const Settings& settings, const Policy& policy,
                                                     const Clock& clock, const RunSetup& setup);

  std::vector<Command> Handle(const Event& event);

  // `version`: what the worker serves when it takes the request. Responses that a group of
  // the same prompt left unfinished continue.
  Result<GroupRequest> Start(const StartGroup& command, PolicyVersion version);
  // What the coordinator is to be told: ResponseFinished; under dynamic sampling
  // GroupFailed for a group that teaches nothing; none where the group is gone. `reply` is what a
  // reward function said; without it the problem's verifier judges.
  std::optional<Event> Finish(FinishedResponse response, const RewardReply* reply = nullptr);
  // What the reward function is to be asked; none where the group is gone.
  std::optional<RewardRequest> RewardRequestFor(const FinishedResponse& response) const;
  // What its environment said; null where it gave no reward.
  const EnvironmentRecord* EnvironmentRewardOf(MemberId id) const;
  // What a response that paused asks of the tool or its environment; none where it ends instead.
  // REQUIRES: its group is there
  std::optional<ToolRequest> CallOf(MemberId id, const PartialResponse& response) const;
  // The tool replied after this time: what the response reads; none where it ends.
  Result<std::optional<std::vector<TokenId>>> Reply(MemberId id, const PartialResponse& response,
                                                    const ToolReply& reply, Seconds took);
  std::vector<TrainSequence> BatchOf(const TrainBatch& command) const;
  MetricsRow EndStep(const TrainBatch& command, const StepTimes& times, const MetricList& training);
  void Drop(const DropGroup& command);
  // `unfinished`: responses of the group as far as they got. With keep_prefix they wait for
  // the next group of the same prompt; otherwise they are lost.
  void Abandon(const AbandonGroup& command, GroupInFlight unfinished);
  // Unfinished responses of a group that was abandoned before.
  void CountCancelled(const std::vector<PartialResponse>& unfinished);

  // The part of a checkpoint that does not depend on the driver. Files of the writer, where
  // there is one, are flushed and their sizes noted.
  Result<RunCheckpoint> Describe(PolicyVersion step, PolicyVersion served) const;
  Result<SavedTrainer> CopyTrainer() const;
  // Puts back setup.loaded, or else the newest whole checkpoint. REQUIRES: freshly made
  Result<ResumedRun> Restore();

  Coordinator& coordinator() { return coordinator_; }
  RunJournal& journal() { return journal_; }
  TrajectoryStore& store() { return store_; }
  const PromptSource& prompt_source() const { return parts_.prompt_source; }
  Trainer& trainer() { return *parts_.trainer; }
  Evaluator& evaluator() { return parts_.evaluator; }
  const std::shared_ptr<ToolExecutor>& executor() const { return parts_.executor; }
  // Null where pace itself verifies.
  const std::shared_ptr<RewardPool>& rewards() const { return parts_.rewards; }

 private:
  struct KeptResponse {
    PartialResponse response = {};
    ToolRecord tools = {};
    EnvironmentRecord environment = {};
  };
  struct Parts {
    PromptSource prompt_source;
    std::unique_ptr<Trainer> trainer;
    Evaluator evaluator;
    std::shared_ptr<ToolExecutor> executor;  // null without tools
    std::shared_ptr<RewardPool> rewards;
    std::unique_ptr<AdmissionPolicy> admission;  // moves into the coordinator
    // Of the policy's weights, where KL penalties measure the distance from them.
    std::optional<uint32_t> initial_checksum;
  };

  TrainingRun(const Settings& settings, const Policy& policy, const Clock& clock,
              const RunSetup& setup, Parts parts);

  // The largest prompt index among these groups.
  PromptIndex NewestPrompt(const std::vector<GroupId>& groups) const;
  void TakeKept(PromptIndex prompt, PolicyVersion version, GroupRequest& request,
                GroupTrajectories& group);
  Status RestoreTrainer(const std::string& folder);

  const Settings& settings_;
  const Policy& policy_;
  const Clock& clock_;
  const RunSetup& setup_;
  Parts parts_;
  TrajectoryStore store_;
  // Of abandoned groups, by prompt and member.
  std::map<PromptIndex, std::map<int64_t, KeptResponse>> kept_;
  RunJournal journal_;
  Coordinator coordinator_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_TRAINING_RUN_H_
