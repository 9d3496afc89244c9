#include "execution/training_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "control/admission_policy.h"
#include "control/supply_policy.h"

namespace pace {
namespace {

CoordinatorOptions OptionsOf(const Settings& settings, bool saves) {
  CoordinatorOptions options = CoordinatorOptions::Of(settings);
  options.save_at_end = saves;
  return options;
}

}  // namespace

Result<std::unique_ptr<TrainingRun>> TrainingRun::Create(const Settings& settings,
                                                         const Policy& policy, const Clock& clock,
                                                         RunWriter* writer, bool saves) {
  PACE_ASSIGN_OR_RETURN(PromptSource prompt_source, PromptSource::Create(settings, policy));
  return std::unique_ptr<TrainingRun>(
      new TrainingRun(settings, std::move(prompt_source), clock, writer, saves));
}

TrainingRun::TrainingRun(const Settings& settings, PromptSource prompt_source, const Clock& clock,
                         RunWriter* writer, bool saves)
    : settings_(settings),
      prompt_source_(std::move(prompt_source)),
      journal_(settings, prompt_source_, clock, store_, writer),
      coordinator_(OptionsOf(settings, saves),
                   MakeAdmissionPolicy(settings.admission, settings.batch.num_groups,
                                       static_cast<uint64_t>(settings.run.seed)),
                   MakeSupplyPolicy(settings.supply, settings.batch.num_groups), &journal_) {}

std::vector<Command> TrainingRun::Handle(const Event& event) {
  journal_.OnEvent(event);
  return coordinator_.Handle(event);
}

Result<GroupRequest> TrainingRun::Start(const StartGroup& command) {
  PACE_ASSIGN_OR_RETURN(GroupRequest request,
                        prompt_source_.RequestFor(command.group, command.prompt, command.attempt));
  GroupTrajectories group;
  group.group = command.group;
  group.prompt = command.prompt;
  group.worker = command.worker;
  group.prompt_tokens = request.prompt_tokens;
  group.members.resize(static_cast<size_t>(settings_.NumMembers()));
  if (prompt_source_.turns() != nullptr) group.tools.resize(group.members.size());
  group.greedy_last = settings_.train.WantsGreedyResponse();
  store_.Begin(std::move(group));
  return request;
}

std::optional<Event> TrainingRun::Finish(FinishedResponse response) {
  const MemberId id = response.id;
  const GroupTrajectories* const group = store_.Find(id.group);
  if (group == nullptr) return std::nullopt;
  const Judgement judged = prompt_source_.Judge(group->prompt, response.response);
  Trajectory trajectory{.response = std::move(response.response),
                        .reason = response.reason,
                        .correct = judged.correct,
                        .reward = judged.reward,
                        .completed = coordinator_.version()};
  ResponseFinished event;
  event.group = id.group;
  event.member = id.member;
  event.segments = trajectory.Segments();
  // A policy that diverged gives log-probs that are no numbers; that is no score.
  const std::optional<double> score = trajectory.response.prefix_score;
  const bool has_score = score.has_value() && std::isfinite(*score);
  if (settings_.admission.UsesPrefixScores() && has_score) event.prefix_score = score;
  event.num_bytes = trajectory.num_bytes();
  journal_.totals().num_tokens_generated += trajectory.response.num_policy_tokens();
  journal_.totals().num_interrupted += trajectory.response.num_interrupts > 0 ? 1 : 0;
  store_.Finish(id, std::move(trajectory));
  journal_.OnResponse(*group, id.member);
  if (settings_.train.dynamic_sampling && group->complete() && group->uniform()) {
    journal_.OnGroupDropped(*group, coordinator_.version());
    Abandon(id.group, 0);
    return GroupFailed{.group = id.group, .retry = false};
  }
  return event;
}

std::optional<ToolCall> TrainingRun::CallOf(const PartialResponse& response) const {
  return prompt_source_.turns()->CallOf(response);
}

Result<std::optional<std::vector<TokenId>>> TrainingRun::Reply(MemberId id,
                                                               const PartialResponse& response,
                                                               const ToolReply& reply,
                                                               Seconds took) {
  store_.AddCall(id, RecordOf(reply, took));
  return prompt_source_.turns()->ReplyOf(response, reply.text);
}

std::vector<TrainSequence> TrainingRun::BatchOf(const TrainBatch& command) const {
  return store_.Sequences(command.groups, settings_.train.rollout_logprobs);
}

PromptIndex TrainingRun::NewestPrompt(const std::vector<GroupId>& groups) const {
  int64_t newest = 0;
  for (const GroupId group : groups) {
    newest = std::max(newest, store_.At(group).prompt.value());
  }
  return PromptIndex(newest);
}

void TrainingRun::EndStep(const TrainBatch& command, const StepTimes& times,
                          const MetricList& training) {
  journal_.totals().num_trained_groups += static_cast<int64_t>(command.groups.size());
  MetricList metrics = training;
  if (const auto epoch = prompt_source_.EpochOf(NewestPrompt(command.groups))) {
    metrics.push_back({"data/epoch", *epoch});
  }
  journal_.EndStep(times, coordinator_.throughput(), metrics);
  for (const GroupId group : command.groups) {
    journal_.totals().num_tokens_never_trained += store_.At(group).num_greedy_tokens();
    store_.Remove(group);
  }
}

void TrainingRun::Drop(const DropGroup& command) {
  const GroupTrajectories& group = store_.At(command.group);
  journal_.totals().num_tokens_never_trained += group.num_tokens();
  const bool evicted =
      command.reason == Reason::kPoolGroups || command.reason == Reason::kPoolBytes;
  if (evicted) journal_.OnGroupEvicted(group);
  store_.Remove(command.group);
}

Status TrainingRun::CheckAbandon(const AbandonGroup& command) {
  if (!command.keep_prefix) return Status::Ok();
  return Unavailable("group ", command.group.value(),
                     ": the supply policy keeps prefixes of abandoned groups, which pace sim alone "
                     "resumes");
}

void TrainingRun::CountCancelled(const std::vector<PartialResponse>& unfinished) {
  for (const PartialResponse& response : unfinished) {
    journal_.totals().num_tokens_generated += response.num_policy_tokens();
    journal_.totals().num_tokens_never_trained += response.num_policy_tokens();
  }
}

void TrainingRun::Abandon(GroupId group, int64_t unfinished) {
  const GroupTrajectories* const found = store_.Find(group);
  if (found == nullptr) return;
  journal_.totals().num_tokens_generated += unfinished;
  journal_.totals().num_tokens_never_trained += found->num_tokens() + unfinished;
  store_.Remove(group);
}

}  // namespace pace
