#include "execution/training_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "control/admission_policy.h"
#include "control/supply_policy.h"
#include "execution/learner_options.h"
#include "judge/python_policy.h"
#include "record/build_info.h"

namespace pace {
namespace {

CoordinatorOptions OptionsOf(const Settings& settings, const RunSetup& setup) {
  CoordinatorOptions options = CoordinatorOptions::Of(settings);
  // The last step is saved, whatever run.checkpoint_every says.
  options.save_at_end = !setup.checkpoints.empty();
  return options;
}

// A response that continues under another version than that of its last token was
// interrupted, as by a sync.
void Interrupt(const Settings& settings, PartialResponse& response) {
  ++response.num_interrupts;
  const RolloutOptions options = RolloutOptionsOf(settings);
  response.awaits_score = options.score_prefixes && options.sync_mode == SyncMode::kReprefill &&
                          response.num_policy_tokens() >= options.min_scored;
}

}  // namespace

Result<std::unique_ptr<TrainingRun>> TrainingRun::Create(const Settings& settings,
                                                         const Policy& policy, const Clock& clock,
                                                         const RunSetup& setup) {
  PACE_RETURN_IF_ERROR(CheckPrefixScores(settings, /*lab=*/false));
  RunResources resources;
  if (setup.resources.has_value()) {
    resources = *setup.resources;
  } else {
    PACE_ASSIGN_OR_RETURN(resources, RunResources::Acquire(settings, policy));
  }
  PACE_ASSIGN_OR_RETURN(PromptSource prompt_source,
                        PromptSource::Create(settings, policy, resources.executor.get()));
  PACE_ASSIGN_OR_RETURN(const TrainerOptions options, TrainerOptionsOf(settings));
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        Trainer::Create(policy.config, policy.weights, options, setup.ranks));
  PACE_ASSIGN_OR_RETURN(Evaluator evaluator,
                        Evaluator::Create(settings, policy, resources.executor, resources.rewards));
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<AdmissionPolicy> admission,
                        OpenAdmissionPolicy(settings.admission, settings.batch.num_groups,
                                            static_cast<uint64_t>(settings.run.seed),
                                            /*saved=*/!setup.checkpoints.empty()));
  std::optional<uint32_t> initial_checksum;
  if (options.kl.active()) initial_checksum = ChecksumOf(policy.weights);
  return std::unique_ptr<TrainingRun>(
      new TrainingRun(settings, policy, clock, setup,
                      Parts{.prompt_source = std::move(prompt_source),
                            .trainer = std::move(trainer),
                            .evaluator = std::move(evaluator),
                            .executor = std::move(resources.executor),
                            .rewards = std::move(resources.rewards),
                            .admission = std::move(admission),
                            .initial_checksum = initial_checksum}));
}

TrainingRun::TrainingRun(const Settings& settings, const Policy& policy, const Clock& clock,
                         const RunSetup& setup, Parts parts)
    : settings_(settings),
      policy_(policy),
      clock_(clock),
      setup_(setup),
      parts_(std::move(parts)),
      journal_(settings, parts_.prompt_source, clock, store_, setup.writer, setup.observer),
      coordinator_(OptionsOf(settings, setup), std::move(parts_.admission),
                   setup.make_supply ? setup.make_supply()
                                     : MakeSupplyPolicy(settings.supply, settings.batch.num_groups),
                   &journal_) {
  if (parts_.executor == nullptr || setup.observer == nullptr) return;
  const std::string text = parts_.executor->Description();
  if (!text.empty()) setup.observer->OnNote("sandbox: " + text);
}

std::vector<Command> TrainingRun::Handle(const Event& event) {
  journal_.OnEvent(event);
  return coordinator_.Handle(event);
}

Result<GroupRequest> TrainingRun::Start(const StartGroup& command, PolicyVersion version) {
  PACE_ASSIGN_OR_RETURN(GroupRequest request,
                        prompt_source().RequestFor(command.group, command.prompt, command.attempt));
  GroupTrajectories group;
  group.group = command.group;
  group.prompt = command.prompt;
  group.worker = command.worker;
  group.prompt_tokens = request.prompt_tokens;
  group.members.resize(static_cast<size_t>(settings_.NumMembers()));
  if (prompt_source().turns() != nullptr) group.tools.resize(group.members.size());
  group.greedy_last = settings_.train.WantsGreedyResponse();
  TakeKept(command.prompt, version, request, group);
  store_.Begin(std::move(group));
  return request;
}

void TrainingRun::TakeKept(PromptIndex prompt, PolicyVersion version, GroupRequest& request,
                           GroupTrajectories& group) {
  auto found = kept_.extract(prompt);
  if (found.empty()) return;
  request.resumed.resize(static_cast<size_t>(request.num_members()));
  for (auto& [member, kept] : found.mapped()) {
    PartialResponse& response = kept.response;
    const PolicyVersion last = response.tokens.empty() ? version : response.tokens.back().version;
    // Versions of a response never fall: a worker that is behind starts it again.
    if (last > version) {
      CountCancelled({response});
      continue;
    }
    if (last < version) Interrupt(settings_, response);
    const auto index = static_cast<size_t>(member);
    request.resumed[index] = std::move(response);
    if (!group.tools.empty()) group.tools[index] = kept.tools;
    if (kept.environment.num_steps > 0) group.environments[member] = std::move(kept.environment);
  }
}

std::optional<RewardRequest> TrainingRun::RewardRequestFor(const FinishedResponse& response) const {
  const GroupTrajectories* const group = store_.Find(response.id.group);
  if (group == nullptr) return std::nullopt;
  return RewardRequestOf(prompt_source().ProblemAt(group->prompt), response.response,
                         prompt_source().tokenizer());
}

const EnvironmentRecord* TrainingRun::EnvironmentRewardOf(MemberId id) const {
  const GroupTrajectories* const group = store_.Find(id.group);
  if (group == nullptr) return nullptr;
  const auto found = group->environments.find(id.member);
  const bool judged = found != group->environments.end() && found->second.reward.has_value();
  return judged ? &found->second : nullptr;
}

std::optional<Event> TrainingRun::Finish(FinishedResponse response, const RewardReply* reply) {
  const MemberId id = response.id;
  const GroupTrajectories* const group = store_.Find(id.group);
  if (group == nullptr) return std::nullopt;
  const EnvironmentRecord* const environment = EnvironmentRewardOf(id);
  const Judgement judged =
      environment != nullptr ? prompt_source().Judge(*environment, response.response)
      : reply != nullptr     ? prompt_source().Judge(*reply, response.response)
                             : prompt_source().Judge(group->prompt, response.response);
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
  journal_.OnResponse(*group, id.member, judged.detail);
  if (settings_.train.dynamic_sampling && group->complete() && group->uniform()) {
    journal_.OnGroupDropped(*group, coordinator_.version());
    Abandon({id.group, /*keep_prefix=*/false}, {});
    return GroupFailed{.group = id.group, .retry = false};
  }
  return event;
}

std::optional<ToolRequest> TrainingRun::CallOf(MemberId id, const PartialResponse& response) const {
  const TurnRules& turns = *prompt_source().turns();
  if (settings_.tools.kind() != ToolUse::kEnvironment) {
    std::optional<ToolCall> call = turns.CallOf(response);
    if (!call.has_value()) return std::nullopt;
    return ToolRequest(*std::move(call));
  }
  const GroupTrajectories& group = store_.At(id.group);
  EnvironmentTurn turn = turns.TurnOf(response);
  if (const auto known = group.environments.find(id.member); known != group.environments.end()) {
    // It has answered this turn already, and the response was to end.
    if (known->second.num_steps >= std::ssize(turn.turns)) return std::nullopt;
    turn.state = known->second.state;
    turn.num_restored = known->second.num_steps;
  }
  turn.key = Concat("train ", id.group.value(), " ", id.member);
  turn.problem = EnvironmentProblemOf(prompt_source().ProblemAt(group.prompt));
  return ToolRequest(std::move(turn));
}

Result<std::optional<std::vector<TokenId>>> TrainingRun::Reply(MemberId id,
                                                               const PartialResponse& response,
                                                               const ToolReply& reply,
                                                               Seconds took) {
  const TurnRules& turns = *prompt_source().turns();
  if (reply.step != nullptr) store_.AddStep(id, *reply.step);
  // The turn with which an environment ends a response is no call.
  const bool counts = reply.step == nullptr || !(reply.ends() || turns.TurnOf(response).last);
  if (counts) store_.AddCall(id, RecordOf(reply, took));
  return turns.ReplyOf(response, reply);
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

MetricsRow TrainingRun::EndStep(const TrainBatch& command, const StepTimes& times,
                                const MetricList& training) {
  journal_.totals().num_trained_groups += static_cast<int64_t>(command.groups.size());
  MetricList metrics = training;
  if (const auto epoch = prompt_source().EpochOf(NewestPrompt(command.groups))) {
    metrics.push_back({"data/epoch", *epoch});
  }
  MetricsRow row = journal_.EndStep(times, coordinator_, metrics);
  for (const GroupId group : command.groups) {
    journal_.totals().num_tokens_never_trained += store_.At(group).num_greedy_tokens();
    store_.Remove(group);
  }
  return row;
}

void TrainingRun::Drop(const DropGroup& command) {
  journal_.totals().num_tokens_never_trained += store_.At(command.group).num_tokens();
  store_.Remove(command.group);
}

void TrainingRun::Abandon(const AbandonGroup& command, GroupInFlight unfinished) {
  const GroupTrajectories* const group = store_.Find(command.group);
  if (group == nullptr) return;
  journal_.totals().num_tokens_never_trained += group->num_tokens();
  if (command.keep_prefix) {
    auto& kept = kept_[group->prompt];
    for (size_t i = 0; i < unfinished.members.size(); ++i) {
      const int64_t member = unfinished.members[i];
      const auto index = static_cast<size_t>(member);
      const auto environment = group->environments.find(member);
      kept[member] = {.response = std::move(unfinished.responses[i]),
                      .tools = group->tools.empty() ? ToolRecord{} : group->tools[index],
                      .environment = environment == group->environments.end()
                                         ? EnvironmentRecord{}
                                         : environment->second};
    }
  } else {
    CountCancelled(unfinished.responses);
  }
  store_.Remove(command.group);
}

void TrainingRun::CountCancelled(const std::vector<PartialResponse>& unfinished) {
  for (const PartialResponse& response : unfinished) {
    journal_.totals().num_tokens_generated += response.num_policy_tokens();
    journal_.totals().num_tokens_never_trained += response.num_policy_tokens();
  }
}

Result<RunCheckpoint> TrainingRun::Describe(PolicyVersion step, PolicyVersion served) const {
  RunCheckpoint checkpoint;
  checkpoint.step = step;
  checkpoint.served = served;
  checkpoint.totals = journal_.totals();
  checkpoint.step_totals = journal_.step_totals();
  checkpoint.warnings = journal_.warnings();
  if (coordinator_.gathering()) checkpoint.under_way = journal_.under_way();
  checkpoint.coordinator = coordinator_.Save();
  PACE_RETURN_IF_ERROR(coordinator_.failure());
  checkpoint.settings = ToYaml(settings_);
  checkpoint.version = PaceVersion();
  checkpoint.commit = PaceCommit();
  for (const auto& [id, group] : store_.groups()) {
    checkpoint.groups.push_back(group);
    for (const auto& [member, record] : group.environments) {
      if (group.members[static_cast<size_t>(member)].has_value()) continue;
      checkpoint.environments.push_back({.id = {id, member}, .record = record});
    }
  }
  for (const auto& [prompt, responses] : kept_) {
    GroupInFlight& kept = checkpoint.kept.emplace_back();
    kept.group = GroupId(prompt.value());
    for (const auto& [member, response] : responses) {
      kept.members.push_back(member);
      kept.responses.push_back(response.response);
      if (response.environment.num_steps == 0) continue;
      checkpoint.environments.push_back(
          {.id = {kept.group, member}, .kept = true, .record = response.environment});
    }
  }
  if (setup_.writer == nullptr || setup_.checkpoints.empty()) return checkpoint;
  PACE_ASSIGN_OR_RETURN(checkpoint.record_sizes, setup_.writer->Flush());
  return checkpoint;
}

Result<SavedTrainer> TrainingRun::CopyTrainer() const {
  PACE_ASSIGN_OR_RETURN(TrainerState state, parts_.trainer->Copy());
  return SavedTrainer{std::move(state), parts_.initial_checksum};
}

Status TrainingRun::RestoreTrainer(const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(const SavedTrainer saved, LoadTrainerState(policy_.config, folder));
  const std::optional<uint32_t>& initial = parts_.initial_checksum;
  if (initial.has_value() && saved.initial_checksum.has_value() &&
      saved.initial_checksum != initial) {
    return InvalidArgument("policy.model = ", settings_.policy.model,
                           ": is not the model that the run began with, and its KL penalty is the "
                           "distance from that one (put it back)");
  }
  return parts_.trainer->Restore(saved.state).At(folder + "/optimizer.safetensors");
}

Result<ResumedRun> TrainingRun::Restore() {
  ResumedRun resumed;
  if (setup_.loaded != nullptr) {
    resumed.folder = std::exchange(setup_.loaded->folder, {});
    resumed.checkpoint = std::exchange(setup_.loaded->run, {});
  } else {
    const auto note = [this](const std::string& text) {
      if (setup_.observer != nullptr) setup_.observer->OnNote(text);
    };
    PACE_ASSIGN_OR_RETURN(LoadedCheckpoint newest, LoadNewestCheckpoint(setup_.checkpoints, note));
    resumed.folder = std::move(newest.folder);
    resumed.checkpoint = std::move(newest.run);
  }
  RunCheckpoint& saved = resumed.checkpoint;
  PACE_RETURN_IF_ERROR(RestoreTrainer(resumed.folder));
  PACE_RETURN_IF_ERROR(coordinator_.Restore(saved.coordinator).At(resumed.folder));
  std::map<GroupId, std::map<int64_t, EnvironmentRecord>> environments;
  for (SavedEnvironment& environment : saved.environments) {
    const MemberId id = environment.id;
    if (id.member < 0 || id.member >= settings_.NumMembers()) {
      return DataLoss(resumed.folder, ": an environment of member ", id.member, " of ",
                      settings_.NumMembers());
    }
    if (environment.kept) {
      kept_[PromptIndex(id.group.value())][id.member].environment = std::move(environment.record);
    } else {
      environments[id.group][id.member] = std::move(environment.record);
    }
  }
  saved.environments.clear();
  for (GroupTrajectories& group : saved.groups) {
    group.environments = std::move(environments[group.group]);
    store_.Begin(std::move(group));
  }
  saved.groups.clear();
  for (GroupInFlight& kept : saved.kept) {
    auto& responses = kept_[PromptIndex(kept.group.value())];
    for (size_t i = 0; i < kept.members.size(); ++i) {
      const int64_t member = kept.members[i];
      if (member < 0 || member >= settings_.NumMembers()) {
        return DataLoss(resumed.folder, ": a kept response is member ", member, " of ",
                        settings_.NumMembers());
      }
      responses[member].response = std::move(kept.responses[i]);
    }
  }
  saved.kept.clear();
  RunJournal::UnderWay under_way;
  under_way.journal.drawn.plan.step = saved.step;
  under_way.facts.step = saved.step.step();
  journal_.Restore(saved.totals, saved.step_totals, saved.warnings,
                   saved.under_way.value_or(under_way));
  if (saved.served == saved.step) {
    PACE_ASSIGN_OR_RETURN(resumed.served, parts_.trainer->Snapshot());
    return resumed;
  }
  PACE_ASSIGN_OR_RETURN(resumed.served, LoadServedWeights(policy_.config, resumed.folder));
  return resumed;
}

}  // namespace pace
