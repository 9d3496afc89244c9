#include "rollout/engine.h"

#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/mutex.h"

namespace pace {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Waits look again this often; nothing depends on it.
constexpr std::chrono::seconds kPatience{1};

struct SubmitCommand {
  GroupRequest request;
  SteadyClock::time_point asked = SteadyClock::now();
};
struct CancelCommand {
  GroupId group;
};
struct ContinueCommand {
  MemberId id;
  std::vector<TokenId> tool_tokens;
};
struct FinishPausedCommand {
  MemberId id;
};
struct SyncCommand {
  PolicyVersion version;
  std::shared_ptr<const DecoderWeights> weights;
};
struct InvalidateCommand {};
struct PauseCommand {
  int64_t ticket = 0;  // what the caller waits for
  bool stop = false;
};
struct TakeCommand {
  int64_t ticket = 0;
  GroupId group;
};
struct ResumeCommand {};

using Command =
    std::variant<SubmitCommand, CancelCommand, ContinueCommand, FinishPausedCommand, SyncCommand,
                 InvalidateCommand, PauseCommand, TakeCommand, ResumeCommand>;

}  // namespace

struct RolloutEngine::State {
  State(std::unique_ptr<EngineCore> given_core, std::function<void()> listener,
        PassObserver observer)
      : decoder(given_core->decoder()),
        on_events(std::move(listener)),
        on_pass(std::move(observer)),
        core(std::move(given_core)),
        newest(core->version()) {
    thread = std::thread([this] { Run(); });
  }

  // Callers' side.
  bool Post(Command command) PACE_EXCLUDES(mutex);
  // Posts a command with its own ticket and waits for the reply.
  template <typename TicketCommand>
  std::vector<GroupRequest> Ask(TicketCommand command) PACE_EXCLUDES(mutex);

  // The engine's thread.
  void Run() PACE_EXCLUDES(mutex);
  void HandOver() PACE_EXCLUDES(mutex);
  // What was asked; waits while idle.
  std::vector<Command> TakeCommands() PACE_EXCLUDES(mutex);
  void Do(SubmitCommand&& command);
  void Do(CancelCommand&& command);
  void Do(ContinueCommand&& command);
  void Do(FinishPausedCommand&& command);
  void Do(SyncCommand&& command);
  void Do(InvalidateCommand&& command);
  void Do(PauseCommand&& command);
  void Do(TakeCommand&& command);
  void Do(ResumeCommand&& command);
  void Step();
  void CountFirstTokens(const std::vector<MemberId>& sampled);
  bool IsPaused(MemberId id) const {
    const PartialResponse* const response = core->Peek(id);
    return response != nullptr && response->paused.has_value();
  }
  bool idle() const { return paused || !core->busy() || !core->version().has_value(); }

  const Decoder& decoder;  // the core's; Prepare alone, from any thread
  const std::function<void()> on_events;
  const PassObserver on_pass;

  // Of the engine's thread alone.
  const std::unique_ptr<EngineCore> core;
  bool paused = false;
  bool stopping = false;
  std::vector<RolloutEvent> new_events;
  std::map<int64_t, std::vector<GroupRequest>> new_replies;
  RolloutStats new_stats;
  std::map<MemberId, SteadyClock::time_point> no_token_yet;  // when they were asked for

  mutable Mutex mutex;
  CondVar asked;     // commands came
  CondVar happened;  // events or replies came, or the thread ended
  std::vector<Command> commands PACE_GUARDED_BY(mutex);
  std::vector<RolloutEvent> events PACE_GUARDED_BY(mutex);
  std::map<int64_t, std::vector<GroupRequest>> replies PACE_GUARDED_BY(mutex);
  int64_t next_ticket PACE_GUARDED_BY(mutex) = 0;
  std::optional<PolicyVersion> newest PACE_GUARDED_BY(mutex);  // asked for
  RolloutStats stats PACE_GUARDED_BY(mutex);
  bool stopped PACE_GUARDED_BY(mutex) = false;

  std::thread thread;
};

bool RolloutEngine::State::Post(Command command) {
  const MutexLock lock(mutex);
  if (stopped) return false;
  commands.push_back(std::move(command));
  asked.NotifyOne();
  return true;
}

template <typename TicketCommand>
std::vector<GroupRequest> RolloutEngine::State::Ask(TicketCommand command) {
  const MutexLock lock(mutex);
  if (stopped) return {};
  const int64_t ticket = next_ticket++;
  command.ticket = ticket;
  commands.emplace_back(std::move(command));
  asked.NotifyOne();
  while (!replies.contains(ticket) && !stopped) {
    happened.WaitUntil(mutex, SteadyClock::now() + kPatience);
  }
  const auto reply = replies.extract(ticket);
  return reply.empty() ? std::vector<GroupRequest>() : std::move(reply.mapped());
}

void RolloutEngine::State::Run() {
  while (!stopping) {
    HandOver();
    for (Command& command : TakeCommands()) {
      if (stopping) break;
      std::visit([this](auto& typed) { Do(std::move(typed)); }, command);
    }
    if (!stopping && !idle()) Step();
  }
  HandOver();
}

void RolloutEngine::State::HandOver() {
  const bool tells = on_events && !new_events.empty();
  {
    const MutexLock lock(mutex);
    if (!new_events.empty() || !new_replies.empty() || stopping) happened.NotifyAll();
    for (RolloutEvent& event : new_events) events.push_back(std::move(event));
    new_events.clear();
    replies.merge(new_replies);
    stats = new_stats;
    stopped = stopping;
  }
  if (tells) on_events();
}

std::vector<Command> RolloutEngine::State::TakeCommands() {
  const bool wait = idle();
  const MutexLock lock(mutex);
  while (wait && commands.empty()) asked.WaitUntil(mutex, SteadyClock::now() + kPatience);
  return std::exchange(commands, {});
}

void RolloutEngine::State::Do(SubmitCommand&& command) {
  const GroupId group = command.request.group;
  std::vector<MemberId> members;
  for (int64_t i = 0; i < command.request.num_members(); ++i) {
    members.push_back({group, command.request.member(i)});
  }
  const Status status = core->Submit(std::move(command.request));
  if (!status.ok()) {
    new_events.emplace_back(GroupRefused{group, status});
    return;
  }
  for (const MemberId id : members) {
    if (!IsPaused(id)) no_token_yet.emplace(id, command.asked);
  }
}

void RolloutEngine::State::Do(CancelCommand&& command) {
  std::optional<GroupRequest> request = core->Cancel(command.group);
  std::erase_if(no_token_yet,
                [&](const auto& entry) { return entry.first.group == command.group; });
  if (request) new_events.emplace_back(GroupCancelled{*std::move(request)});
}

void RolloutEngine::State::Do(ContinueCommand&& command) {
  if (!IsPaused(command.id)) return;
  if (!core->Continue(command.id, command.tool_tokens).ok()) Do(FinishPausedCommand{command.id});
}

void RolloutEngine::State::Do(FinishPausedCommand&& command) {
  if (IsPaused(command.id)) new_events.emplace_back(core->FinishPaused(command.id));
}

void RolloutEngine::State::Do(SyncCommand&& command) {
  const auto start = SteadyClock::now();
  const Status status = core->Sync(command.version, std::move(command.weights));
  PACE_CHECK(status.ok(), status.message());
  new_stats.sync_time += SteadyClock::now() - start;
  if (core->version() != command.version) return;  // drained: Step installs it
  ++new_stats.num_syncs;
  new_events.emplace_back(WeightsSynced{command.version});
}

void RolloutEngine::State::Do(InvalidateCommand&&) {
  core->InvalidateCache();
}

void RolloutEngine::State::Do(PauseCommand&& command) {
  paused = true;
  stopping = command.stop;
  new_replies.emplace(command.ticket, core->Unfinished());
}

void RolloutEngine::State::Do(TakeCommand&& command) {
  std::vector<GroupRequest>& reply = new_replies[command.ticket];
  std::erase_if(no_token_yet,
                [&](const auto& entry) { return entry.first.group == command.group; });
  if (auto request = core->Cancel(command.group)) reply.push_back(*std::move(request));
}

void RolloutEngine::State::Do(ResumeCommand&&) {
  paused = false;
}

void RolloutEngine::State::Step() {
  const auto start = SteadyClock::now();
  const Seconds scoring_before = core->decoder().scoring_time();
  Result<StepReport> report = core->Step();
  if (!report.ok()) {
    paused = true;
    new_events.emplace_back(DeviceFailed{report.status()});
    return;
  }
  const std::chrono::duration<double> time = SteadyClock::now() - start;
  ++new_stats.num_passes;
  new_stats.num_sampled_tokens += static_cast<int64_t>(report->sampled.size());
  new_stats.num_reprefill_rows += report->num_reprefill_rows;
  new_stats.num_scored_rows += report->num_scored_rows;
  new_stats.num_preemptions += report->num_preempted;
  new_stats.busy_time += time;
  new_stats.score_time += core->decoder().scoring_time() - scoring_before;
  if (on_pass) on_pass(*core, *report);
  if (!no_token_yet.empty()) CountFirstTokens(report->sampled);
  if (report->synced) {
    ++new_stats.num_syncs;
    new_events.emplace_back(WeightsSynced{*report->synced});
  }
  for (FinishedResponse& finished : report->finished) {
    new_events.emplace_back(std::move(finished));
  }
  for (const MemberId id : report->paused) {
    new_events.emplace_back(ResponsePaused{id, *core->Peek(id)});
  }
}

void RolloutEngine::State::CountFirstTokens(const std::vector<MemberId>& sampled) {
  const auto now = SteadyClock::now();
  for (const MemberId id : sampled) {
    const auto found = no_token_yet.find(id);
    if (found == no_token_yet.end()) continue;
    ++new_stats.num_first_tokens;
    new_stats.first_token_time += now - found->second;
    no_token_yet.erase(found);
  }
}

RolloutEngine::RolloutEngine(std::unique_ptr<EngineCore> core, std::function<void()> on_events,
                             PassObserver on_pass)
    : state_(std::make_unique<State>(std::move(core), std::move(on_events), std::move(on_pass))) {}

RolloutEngine::~RolloutEngine() {
  Stop();
  state_->thread.join();
}

void RolloutEngine::Submit(GroupRequest request) {
  state_->Post(SubmitCommand{std::move(request)});
}

void RolloutEngine::InvalidateCache() {
  state_->Post(InvalidateCommand{});
}

void RolloutEngine::Cancel(GroupId group) {
  state_->Post(CancelCommand{group});
}

std::optional<GroupRequest> RolloutEngine::Take(GroupId group) {
  std::vector<GroupRequest> taken = state_->Ask(TakeCommand{.group = group});
  return taken.empty() ? std::nullopt : std::optional(std::move(taken.front()));
}

void RolloutEngine::Continue(MemberId id, std::vector<TokenId> tool_tokens) {
  state_->Post(ContinueCommand{id, std::move(tool_tokens)});
}

void RolloutEngine::FinishPaused(MemberId id) {
  state_->Post(FinishPausedCommand{id});
}

Result<std::shared_ptr<const DecoderWeights>> RolloutEngine::Prepare(
    const WeightSet& weights) const {
  return state_->decoder.Prepare(weights);
}

Status RolloutEngine::Sync(const PublishedWeights& weights) {
  return Sync(weights.version, weights.prepared);
}

Status RolloutEngine::Sync(PolicyVersion version, const WeightSet& weights) {
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> prepared, Prepare(weights));
  return Sync(version, std::move(prepared));
}

Status RolloutEngine::Sync(PolicyVersion version, std::shared_ptr<const DecoderWeights> prepared) {
  const MutexLock lock(state_->mutex);
  if (state_->stopped) return Unavailable("sync to version ", version, ": the engine has stopped");
  if (state_->newest && version <= *state_->newest) {
    return InvalidArgument("sync to version ", version, ": ", *state_->newest,
                           " was asked for before (versions must grow)");
  }
  state_->newest = version;
  state_->commands.emplace_back(SyncCommand{version, std::move(prepared)});
  state_->asked.NotifyOne();
  return Status::Ok();
}

std::vector<RolloutEvent> RolloutEngine::Wait(SteadyClock::time_point deadline) {
  const MutexLock lock(state_->mutex);
  while (state_->events.empty() && !state_->stopped) {
    if (!state_->happened.WaitUntil(state_->mutex, deadline)) break;
  }
  return std::exchange(state_->events, {});
}

std::vector<GroupRequest> RolloutEngine::Pause() {
  return state_->Ask(PauseCommand{.stop = false});
}

void RolloutEngine::Resume() {
  state_->Post(ResumeCommand{});
}

std::vector<GroupRequest> RolloutEngine::Stop() {
  return state_->Ask(PauseCommand{.stop = true});
}

RolloutStats RolloutEngine::stats() const {
  const MutexLock lock(state_->mutex);
  return state_->stats;
}

}  // namespace pace
