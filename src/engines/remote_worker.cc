#include "engines/remote_worker.h"

#include <map>
#include <thread>
#include <utility>

#include "core/mutex.h"

namespace pace {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How often the server is looked after, and how long the thread sleeps at most.
constexpr Seconds kLookAfter{1};
constexpr std::chrono::seconds kPatience{1};
// How often the server is asked what it measured, and the number of that call, which the core
// gives to none of its own.
constexpr Seconds kReadMetrics{2};
constexpr int64_t kMetricsCall = 0;

}  // namespace

struct RemoteWorker::State {
  State(RemoteWorkerOptions given, std::function<void()> listener)
      : options(std::move(given)),
        on_events(std::move(listener)),
        http(options.server),
        core(*options.dialect, options.core) {
    if (options.core.pauses_in_turn) turn = options.turns->Enter([this] { http.Wake(); });
    thread = std::thread([this] { Run(); });
  }

  using Command = std::function<void()>;  // on the worker's thread

  // Callers' side.
  void Post(Command command) PACE_EXCLUDES(mutex);
  std::vector<GroupRequest> Ask(const std::function<void(int64_t ticket)>& ask)
      PACE_EXCLUDES(mutex);

  // The worker's thread.
  void Run() PACE_EXCLUDES(mutex);
  void Act();
  void Carry(RemoteAction& action);
  void AnswerTickets();
  // Answers that came, and calls for which it is time.
  void Hear(const HttpCalls::Done& done);
  void AskMetrics(SteadyClock::time_point now);
  void HandOver() PACE_EXCLUDES(mutex);

  // Weights over the channel, on a thread of their own.
  void Open(const OpenChannel& action);
  void Transfer(int64_t call, std::function<Status()> work) PACE_EXCLUDES(mutex);
  void EndTransfer();

  struct Ticket {
    std::optional<GroupId> group = {};  // of Take; none: Pause
    SteadyClock::time_point deadline = {};
    std::optional<GroupRequest> taken = {};
  };

  const RemoteWorkerOptions options;
  const std::function<void()> on_events;
  HttpCalls http;

  // Of the worker's thread alone.
  RemoteCore core;
  std::map<int64_t, Ticket> tickets;
  std::vector<RolloutEvent> new_events;
  std::map<int64_t, std::vector<GroupRequest>> new_replies;
  RolloutStats new_stats;
  bool asks_metrics = false;
  SteadyClock::time_point metrics_asked = {};
  std::optional<FirstTokens> first_tokens_before;  // as the worker joined
  std::unique_ptr<PauseTurns::Turn> turn;
  std::unique_ptr<WeightChannel> channel;
  std::thread transfer;       // one at a time
  int64_t transfer_call = 0;  // that it is of

  mutable Mutex mutex;
  CondVar happened;  // events or replies came, or the thread ended
  std::vector<Command> commands PACE_GUARDED_BY(mutex);
  std::vector<RolloutEvent> events PACE_GUARDED_BY(mutex);
  std::optional<Status> transferred PACE_GUARDED_BY(mutex);
  std::map<int64_t, std::vector<GroupRequest>> replies PACE_GUARDED_BY(mutex);
  int64_t next_ticket PACE_GUARDED_BY(mutex) = 0;
  std::optional<PolicyVersion> newest PACE_GUARDED_BY(mutex);  // asked for
  RolloutStats stats PACE_GUARDED_BY(mutex);
  bool gone PACE_GUARDED_BY(mutex) = false;
  bool stopping PACE_GUARDED_BY(mutex) = false;

  std::thread thread;
};

void RemoteWorker::State::Post(Command command) {
  {
    const MutexLock lock(mutex);
    commands.push_back(std::move(command));
  }
  http.Wake();
}

std::vector<GroupRequest> RemoteWorker::State::Ask(const std::function<void(int64_t)>& ask) {
  int64_t ticket = 0;
  {
    const MutexLock lock(mutex);
    if (gone) return {};
    ticket = next_ticket++;
  }
  Post([ask, ticket] { ask(ticket); });
  const MutexLock lock(mutex);
  while (!replies.contains(ticket) && !gone) {
    happened.WaitUntil(mutex, SteadyClock::now() + kPatience);
  }
  const auto reply = replies.extract(ticket);
  return reply.empty() ? std::vector<GroupRequest>() : std::move(reply.mapped());
}

void RemoteWorker::State::Open(const OpenChannel& action) {
  EndTransfer();
  Result<std::unique_ptr<WeightChannel>> opened =
      options.open_channel({action.num_workers, http.local_address()});
  if (!opened.ok()) return core.Transferred(action.call, opened.status());
  channel = std::move(opened).value();
  core.Invited(action.call, channel->Invitation());
  Transfer(action.call, [this] { return channel->Join(); });
}

void RemoteWorker::State::Transfer(int64_t call, std::function<Status()> work) {
  if (transfer.joinable()) transfer.join();
  transfer_call = call;
  transfer = std::thread([this, work = std::move(work)] {
    const Status status = work();
    {
      const MutexLock lock(mutex);
      transferred = status;
    }
    http.Wake();
  });
}

void RemoteWorker::State::EndTransfer() {
  if (channel != nullptr) channel->Cancel();
  if (transfer.joinable()) transfer.join();
  channel.reset();
}

void RemoteWorker::State::Run() {
  core.Join();
  auto looked = SteadyClock::now();
  while (true) {
    Act();
    AnswerTickets();
    Act();
    HandOver();
    std::vector<Command> todo;
    std::optional<Status> sent;
    {
      const MutexLock lock(mutex);
      if (stopping) break;
      todo = std::exchange(commands, {});
      sent = std::exchange(transferred, std::nullopt);
    }
    for (const Command& command : todo) command();
    if (sent.has_value()) core.Transferred(transfer_call, *sent);
    const bool may_pause = turn != nullptr && turn->TakeAllowed();
    if (may_pause) core.AllowPause();
    if (!todo.empty() || sent.has_value() || may_pause) continue;
    const auto before = SteadyClock::now();
    const bool busy = core.num_in_server() > 0;
    const bool syncing = core.syncing();
    for (const HttpCalls::Done& done : http.Poll(kLookAfter)) Hear(done);
    const auto now = SteadyClock::now();
    if (busy) new_stats.busy_time += now - before;
    if (syncing) new_stats.sync_time += now - before;
    AskMetrics(now);
    if (now - looked >= kLookAfter) {
      looked = now;
      core.LookAfter();
    }
  }
  EndTransfer();
}

void RemoteWorker::State::Hear(const HttpCalls::Done& done) {
  if (done.call == kMetricsCall) {
    asks_metrics = false;
    // A server that does not measure works as well.
    if (!done.answer.ok() || done.answer->status != 200) return;
    const FirstTokens now = options.dialect->ReadMetrics(done.answer->body);
    if (!first_tokens_before.has_value()) first_tokens_before = now;
    // A proxy may have sent it to another server.
    if (now.count < first_tokens_before->count) return;
    new_stats.num_first_tokens = now.count - first_tokens_before->count;
    new_stats.first_token_time =
        std::max(Seconds(0), Seconds(now.time - first_tokens_before->time));
  } else if (done.answer.ok()) {
    core.Answered(done.call, *done.answer);
  } else {
    core.Failed(done.call, done.answer.status());
  }
}

void RemoteWorker::State::AskMetrics(SteadyClock::time_point now) {
  if (asks_metrics || core.gone() || !core.joined()) return;
  if (now - metrics_asked < kReadMetrics) return;
  asks_metrics = true;
  metrics_asked = now;
  http.Add(kMetricsCall, options.dialect->Metrics(), options.core.control_deadline);
}

void RemoteWorker::State::Act() {
  std::vector<RemoteAction> actions = core.TakeActions();
  for (; !actions.empty(); actions = core.TakeActions()) {
    for (RemoteAction& action : actions) Carry(action);
  }
}

void RemoteWorker::State::Carry(RemoteAction& action) {
  if (auto* send = std::get_if<SendCall>(&action)) {
    http.Add(send->call, send->http, send->deadline);
  } else if (const auto* drop = std::get_if<DropCall>(&action)) {
    if (drop->call == transfer_call) EndTransfer();
    http.Remove(drop->call);
  } else if (const auto* open = std::get_if<OpenChannel>(&action)) {
    Open(*open);
  } else if (auto* weights = std::get_if<SendWeights>(&action)) {
    Transfer(weights->call,
             [this, sent = std::move(weights->weights), chunks = std::move(weights->chunks)] {
               return channel->Send(sent, chunks);
             });
  } else if (std::get_if<AskPause>(&action) != nullptr) {
    turn->Ask();
  } else if (std::get_if<EndPause>(&action) != nullptr) {
    turn->End();
  } else {
    RolloutEvent event = std::get<RolloutEvent>(std::move(action));
    if (auto* cancelled = std::get_if<GroupCancelled>(&event)) {
      const auto taker = std::find_if(tickets.begin(), tickets.end(), [&](const auto& entry) {
        return entry.second.group == cancelled->request.group;
      });
      if (taker != tickets.end()) {
        taker->second.taken = std::move(cancelled->request);
        return;
      }
    }
    if (std::get_if<WeightsSynced>(&event) != nullptr) ++new_stats.num_syncs;
    if (auto* gone_event = std::get_if<WorkerGone>(&event)) {
      gone_event->error = gone_event->error.At(options.server.url);
    }
    new_events.push_back(std::move(event));
  }
}

void RemoteWorker::State::AnswerTickets() {
  for (auto at = tickets.begin(); at != tickets.end();) {
    const auto& [number, ticket] = *at;
    const bool is_take = ticket.group.has_value();
    const bool done = is_take ? !core.Has(*ticket.group) : core.held();
    if (!done && SteadyClock::now() >= ticket.deadline) {
      core.Lose(Unavailable("did not end the requests in flight within ",
                            options.core.control_deadline.count(), " s"));
      Act();
    } else if (!done) {
      ++at;
      continue;
    }
    std::vector<GroupRequest>& reply = new_replies[number];
    if (!is_take) {
      reply = core.Unfinished();
    } else if (ticket.taken.has_value()) {
      reply.push_back(*ticket.taken);
    }
    at = tickets.erase(at);
  }
}

void RemoteWorker::State::HandOver() {
  if (core.gone()) turn.reset();
  const bool tells = on_events && !new_events.empty();
  {
    const MutexLock lock(mutex);
    const bool is_gone = core.gone();
    if (!new_events.empty() || !new_replies.empty() || is_gone != gone) happened.NotifyAll();
    for (RolloutEvent& event : new_events) events.push_back(std::move(event));
    new_events.clear();
    replies.merge(new_replies);
    new_replies.clear();
    gone = is_gone;
    new_stats.num_sampled_tokens = core.num_sampled_tokens();
    new_stats.num_failures = core.num_failures();
    stats = new_stats;
  }
  if (tells) on_events();
}

RemoteWorker::RemoteWorker(RemoteWorkerOptions options, std::function<void()> on_events)
    : state_(std::make_unique<State>(std::move(options), std::move(on_events))) {}

RemoteWorker::~RemoteWorker() {
  {
    const MutexLock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->http.Wake();
  state_->thread.join();
}

void RemoteWorker::Submit(GroupRequest request) {
  state_->Post(
      [state = state_.get(), request = std::move(request)] { state->core.Submit(request); });
}

void RemoteWorker::Cancel(GroupId group) {
  state_->Post([state = state_.get(), group] { state->core.Cancel(group); });
}

std::optional<GroupRequest> RemoteWorker::Take(GroupId group) {
  std::vector<GroupRequest> taken = state_->Ask([state = state_.get(), group](int64_t ticket) {
    const auto deadline = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                                   state->options.core.control_deadline);
    state->tickets.emplace(ticket, State::Ticket{.group = group, .deadline = deadline});
    state->core.Cancel(group);
  });
  return taken.empty() ? std::nullopt : std::optional(std::move(taken.front()));
}

void RemoteWorker::Continue(MemberId id, std::vector<TokenId> tool_tokens) {
  state_->Post([state = state_.get(), id, tokens = std::move(tool_tokens)] {
    state->core.Continue(id, tokens);
  });
}

void RemoteWorker::FinishPaused(MemberId id) {
  state_->Post([state = state_.get(), id] { state->core.FinishPaused(id); });
}

Status RemoteWorker::Sync(const PublishedWeights& weights) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->gone) {
      return Unavailable("sync to version ", weights.version, ": the worker is gone");
    }
    if (state_->newest && weights.version <= *state_->newest) {
      return InvalidArgument("sync to version ", weights.version, ": ", *state_->newest,
                             " was asked for before (versions must grow)");
    }
    state_->newest = weights.version;
  }
  ServerWeights wanted{.version = weights.version};
  if (state_->options.core.weights == WeightPath::kChannel) {
    wanted.weights = weights.weights;
  } else {
    wanted.folder = weights.folder;
    wanted.hold = weights.folder_hold;
  }
  state_->Post([state = state_.get(), wanted = std::move(wanted)] {
    // It may have gone meanwhile; WorkerGone says so.
    const Status status = state->core.Sync(wanted);
    PACE_CHECK(status.ok() || state->core.gone(), status.message());
  });
  return Status::Ok();
}

std::vector<RolloutEvent> RemoteWorker::Wait(SteadyClock::time_point deadline) {
  const MutexLock lock(state_->mutex);
  while (state_->events.empty() && !state_->gone) {
    if (!state_->happened.WaitUntil(state_->mutex, deadline)) break;
  }
  return std::exchange(state_->events, {});
}

std::vector<GroupRequest> RemoteWorker::Pause() {
  return state_->Ask([state = state_.get()](int64_t ticket) {
    const auto deadline = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                                   state->options.core.control_deadline);
    state->tickets.emplace(ticket, State::Ticket{.group = {}, .deadline = deadline});
    state->core.Hold();
  });
}

void RemoteWorker::Resume() {
  state_->Post([state = state_.get()] { state->core.Release(); });
}

RolloutStats RemoteWorker::stats() const {
  const MutexLock lock(state_->mutex);
  return state_->stats;
}

}  // namespace pace
