// TrainingRun: everything of a run but time and threads.
//
// The lab and the runtime differ in when things happen and on which thread; what
// happens is here: the coordinator, the payload of groups, rewards, records,
// checkpoints. A driver turns commands into work and work into events:
//
//   for (const Command& command : run.Handle(event)) ...
//   StartGroup    -> run.Start(command)      a request for the worker's engine
//   a response    -> run.Finish(response)    the event to handle
//   one rests     -> run.CallOf, then run.Reply with what the tool said
//   TrainBatch    -> run.BatchOf(command)    what the learner trains on
//   trained       -> run.EndStep(...), then Handle(StepFinished)
//   DropGroup     -> run.Drop(command)
//   AbandonGroup  -> run.Abandon(group, unfinished)
//
// Thread-safety: none; it belongs to the driver's thread. The learner does not
// belong to it.
#ifndef PACE_EXECUTION_TRAINING_RUN_H_
#define PACE_EXECUTION_TRAINING_RUN_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "coordinator/coordinator.h"
#include "core/clock.h"
#include "core/status.h"
#include "execution/journal.h"
#include "execution/policy.h"
#include "execution/prompt_source.h"
#include "execution/tool_executor.h"
#include "execution/trajectory.h"
#include "record/run_writer.h"
#include "rollout/request.h"
#include "train/metric.h"

namespace pace {

class TrainingRun {
 public:
  // All references outlive the run; `writer` may be null. `saves`: a checkpoint is taken
  // at the end, whatever run.checkpoint_every says.
  static Result<std::unique_ptr<TrainingRun>> Create(const Settings& settings, const Policy& policy,
                                                     const Clock& clock, RunWriter* writer,
                                                     bool saves);

  std::vector<Command> Handle(const Event& event);

  Result<GroupRequest> Start(const StartGroup& command);
  // What the coordinator is to be told: ResponseFinished; under dynamic sampling
  // GroupFailed for a group that teaches nothing; none where the group is gone.
  std::optional<Event> Finish(FinishedResponse response);
  // A response that may use the tool rests, and calls it; none where it ends instead.
  std::optional<ToolCall> CallOf(const PartialResponse& response) const;
  // The tool has replied after so long: what the response reads; none where it ends.
  Result<std::optional<std::vector<TokenId>>> Reply(MemberId id, const PartialResponse& response,
                                                    const ToolReply& reply, Seconds took);
  std::vector<TrainSequence> BatchOf(const TrainBatch& command) const;
  void EndStep(const TrainBatch& command, const StepTimes& times, const MetricList& training);
  void Drop(const DropGroup& command);
  // An error where the command wants prefixes kept: no driver of this run resumes them,
  // and to drop them in silence would change what the supply policy decided.
  static Status CheckAbandon(const AbandonGroup& command);
  // Unfinished responses of a group that was abandoned before.
  void CountCancelled(const std::vector<PartialResponse>& unfinished);
  // `unfinished` tokens of the group were generated and are lost.
  void Abandon(GroupId group, int64_t unfinished);

  Coordinator& coordinator() { return coordinator_; }
  Journal& journal() { return journal_; }
  TrajectoryStore& store() { return store_; }
  const PromptSource& prompt_source() const { return prompt_source_; }
  const Settings& settings() const { return settings_; }

 private:
  // The largest prompt index among these groups.
  PromptIndex NewestPrompt(const std::vector<GroupId>& groups) const;

  TrainingRun(const Settings& settings, PromptSource prompt_source, const Clock& clock,
              RunWriter* writer, bool saves);

  const Settings& settings_;
  PromptSource prompt_source_;
  TrajectoryStore store_;
  Journal journal_;
  Coordinator coordinator_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_TRAINING_RUN_H_
