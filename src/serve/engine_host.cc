#include "serve/engine_host.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/mutex.h"
#include "core/parallel.h"

namespace pace {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Waits look again this often; nothing depends on it.
constexpr std::chrono::seconds kPatience{1};
// How often a wait that has no descriptor looks whether its caller left.
constexpr std::chrono::milliseconds kTick{50};
constexpr size_t kMaxLabelBytes = 1024;

bool IsCancelled(const Cancellation& cancellation) {
  pollfd waiting{cancellation.descriptor, cancellation.events, 0};
  return cancellation.descriptor >= 0 && ::poll(&waiting, 1, 0) > 0;
}

// One call of Generate. The descriptor wakes its thread; all else is the owner's mutex's.
struct Call {
  std::string id;
  FileDescriptor wake;  // an eventfd
  std::optional<Result<Generation>> result;

  void Wake() const { ::eventfd_write(wake.get(), 1); }
};

// The new tokens of streamed responses. The engine's thread adds, the callers of Generate take:
// apart from the host's own mutex, which may be held by one who waits for the engine.
class TokenStreams {
 public:
  void Open(GroupId group, std::shared_ptr<const Call> call) {
    const MutexLock lock(mutex_);
    streams_[group].call = std::move(call);
    num_open_ = std::ssize(streams_);
  }
  void Close(GroupId group) {
    const MutexLock lock(mutex_);
    streams_.erase(group);
    num_open_ = std::ssize(streams_);
  }
  // After a pass.
  void Add(const EngineCore& core, const StepReport& report) {
    if (num_open_ == 0) return;
    const MutexLock lock(mutex_);
    for (const MemberId id : report.sampled) {
      const auto at = streams_.find(id.group);
      const PartialResponse* const response = at == streams_.end() ? nullptr : core.Peek(id);
      if (response == nullptr) continue;  // nobody streams it, or it finished
      at->second.tokens.push_back(response->tokens.back());
      at->second.call->Wake();
    }
  }
  std::vector<TokenRecord> Take(GroupId group) {
    const MutexLock lock(mutex_);
    const auto at = streams_.find(group);
    return at == streams_.end() ? std::vector<TokenRecord>() : std::exchange(at->second.tokens, {});
  }

 private:
  struct Stream {
    std::shared_ptr<const Call> call;
    std::vector<TokenRecord> tokens;
  };
  Mutex mutex_;
  std::map<GroupId, Stream> streams_ PACE_GUARDED_BY(mutex_);
  std::atomic<int64_t> num_open_ = 0;
};

}  // namespace

struct EngineHost::State {
  State(std::unique_ptr<EngineCore> core, const EngineHostOptions& given_options)
      : options(given_options),
        config(core->decoder().config()),
        num_blocks(core->decoder().num_blocks()),
        num_free_blocks(num_blocks),
        engine(std::move(core), {}, [this](const EngineCore& running, const StepReport& report) {
          num_running = running.num_running();
          num_free_blocks = running.num_free_blocks();
          streams.Add(running, report);
        }) {}

  // The thread that takes the engine's events.
  void Pump() PACE_EXCLUDES(mutex);
  void On(FinishedResponse&& event) PACE_REQUIRES(mutex);
  void On(ResponsePaused&& event) PACE_REQUIRES(mutex);
  void On(WeightsSynced&& event) PACE_REQUIRES(mutex);
  void On(GroupCancelled&& event) PACE_REQUIRES(mutex);
  void On(GroupRefused&& event) PACE_REQUIRES(mutex);
  void On(DeviceFailed&& event) PACE_REQUIRES(mutex);
  // Not of an engine in this process.
  void On(WorkerReady&&) PACE_REQUIRES(mutex) {}
  void On(WorkerGone&&) PACE_REQUIRES(mutex) {}

  // Ends a call, if it is still there.
  void End(GroupId group, Result<Generation> result) PACE_REQUIRES(mutex);
  Generation Finished(PartialResponse&& response, std::optional<FinishReason> reason) const
      PACE_REQUIRES(mutex);
  std::vector<WeightSpan> SpansOf(const std::vector<TokenRecord>& tokens) const
      PACE_REQUIRES(mutex);
  bool IsHeld(GroupId group) const PACE_REQUIRES(mutex);
  // Aborts the calls that `wanted` picks; returns how many.
  int64_t AbortIf(const std::function<bool(const Call&)>& wanted) PACE_REQUIRES(mutex);
  // The caller of Generate left.
  void Leave(GroupId group) PACE_EXCLUDES(mutex);
  int64_t num_in_engine() const PACE_REQUIRES(mutex) {
    return std::ssize(calls) - std::ssize(held);
  }
  // Installs weights as the next version.
  Status Install(std::shared_ptr<const DecoderWeights> weights, std::string label)
      PACE_EXCLUDES(mutex);
  void BeginUpdate() PACE_EXCLUDES(mutex);
  void EndUpdate() PACE_EXCLUDES(mutex);

  const EngineHostOptions options;
  const ModelConfig config;
  const int64_t num_blocks;

  // Of the engine's thread, after the last pass.
  std::atomic<int64_t> num_running = 0;
  std::atomic<int64_t> num_free_blocks = 0;
  TokenStreams streams;
  std::atomic<bool> failed = false;  // `failure` is set; read without waiting for the mutex

  mutable Mutex mutex;
  CondVar changed;  // calls ended, a sync took effect, an update ended, or the pause changed
  std::map<GroupId, std::shared_ptr<Call>> calls PACE_GUARDED_BY(mutex);  // unfinished
  std::deque<GroupRequest> held PACE_GUARDED_BY(mutex);  // of these, not in the engine yet
  int64_t next_group PACE_GUARDED_BY(mutex) = 0;
  bool is_paused PACE_GUARDED_BY(mutex) = false;
  int64_t num_pauses PACE_GUARDED_BY(mutex) = 0;  // and resumes
  bool updating PACE_GUARDED_BY(mutex) = false;   // a thread loads weights or changes the label
  std::shared_ptr<const DecoderWeights> weights PACE_GUARDED_BY(mutex);
  std::vector<std::string> labels PACE_GUARDED_BY(mutex);  // by version
  int64_t installed PACE_GUARDED_BY(mutex) = -1;           // version
  Status failure PACE_GUARDED_BY(mutex);
  EngineHostStats totals PACE_GUARDED_BY(mutex);
  bool stopping PACE_GUARDED_BY(mutex) = false;

  RolloutEngine engine;
  std::thread pump;
};

void EngineHost::State::Pump() {
  while (true) {
    std::vector<RolloutEvent> events = engine.Wait(SteadyClock::now() + kPatience);
    const MutexLock lock(mutex);
    for (RolloutEvent& event : events) {
      // A lambda is a function of its own to the thread-safety analysis.
      std::visit([this](auto& typed) PACE_REQUIRES(mutex) { On(std::move(typed)); }, event);
    }
    if (!events.empty()) changed.NotifyAll();
    if (stopping) return;
  }
}

void EngineHost::State::On(FinishedResponse&& event) {
  ++(event.reason == FinishReason::kMaxTokens ? totals.num_at_length : totals.num_stopped);
  End(event.id.group, Finished(std::move(event.response), event.reason));
}

void EngineHost::State::On(ResponsePaused&& event) {
  PACE_CHECK(false, "group ", event.id.group, " paused, which no request asks for");
}

void EngineHost::State::On(WeightsSynced&& event) {
  installed = event.version.step();
}

void EngineHost::State::On(GroupCancelled&& event) {
  ++totals.num_aborted;
  End(event.request.group, Finished(std::move(event.request.resumed.at(0)), std::nullopt));
}

void EngineHost::State::On(GroupRefused&& event) {
  End(event.group, event.error);
}

// The responses that run are lost to their clients, who may ask elsewhere.
void EngineHost::State::On(DeviceFailed&& event) {
  failure = Status(StatusCode::kDataLoss, "the device failed: " + event.error.message());
  failed = true;
  held.clear();
  while (!calls.empty()) End(calls.begin()->first, failure);
}

void EngineHost::State::End(GroupId group, Result<Generation> result) {
  const auto at = calls.find(group);
  if (at == calls.end()) return;
  at->second->result = std::move(result);
  at->second->Wake();
  calls.erase(at);
}

Generation EngineHost::State::Finished(PartialResponse&& response,
                                       std::optional<FinishReason> reason) const {
  Generation generation{.tokens = std::move(response.tokens),
                        .prompt_logprobs = std::move(response.prompt_logprobs),
                        .reason = reason,
                        .weight_versions = {}};
  generation.weight_versions = SpansOf(generation.tokens);
  return generation;
}

std::vector<WeightSpan> EngineHost::State::SpansOf(const std::vector<TokenRecord>& tokens) const {
  std::vector<WeightSpan> spans;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& label = labels.at(static_cast<size_t>(tokens[i].version.step()));
    if (spans.empty() || spans.back().version != label) {
      spans.push_back({.version = label, .start = static_cast<int64_t>(i)});
    }
    spans.back().end = static_cast<int64_t>(i) + 1;
  }
  return spans;
}

bool EngineHost::State::IsHeld(GroupId group) const {
  return std::any_of(held.begin(), held.end(),
                     [group](const GroupRequest& request) { return request.group == group; });
}

int64_t EngineHost::State::AbortIf(const std::function<bool(const Call&)>& wanted) {
  std::vector<GroupId> groups;
  for (const auto& [group, call] : calls) {
    if (wanted(*call)) groups.push_back(group);
  }
  for (const GroupId group : groups) {
    if (!IsHeld(group)) {
      engine.Cancel(group);  // GroupCancelled ends the call, or it finishes before
      continue;
    }
    std::erase_if(held, [group](const GroupRequest& r) { return r.group == group; });
    ++totals.num_aborted;
    End(group, Generation());
  }
  changed.NotifyAll();
  return std::ssize(groups);
}

void EngineHost::State::Leave(GroupId group) {
  const MutexLock lock(mutex);
  if (!calls.contains(group)) return;
  if (IsHeld(group)) {
    std::erase_if(held, [group](const GroupRequest& r) { return r.group == group; });
  } else {
    engine.Cancel(group);
  }
  calls.erase(group);
  changed.NotifyAll();
}

void EngineHost::State::BeginUpdate() {
  const MutexLock lock(mutex);
  while (updating) changed.WaitUntil(mutex, SteadyClock::now() + kPatience);
  updating = true;
}

void EngineHost::State::EndUpdate() {
  const MutexLock lock(mutex);
  updating = false;
  changed.NotifyAll();
}

Status EngineHost::State::Install(std::shared_ptr<const DecoderWeights> given, std::string label) {
  const MutexLock lock(mutex);
  const int64_t version = std::ssize(labels);
  // The label before the sync: tokens of this version may come at once.
  labels.push_back(std::move(label));
  const Status status = engine.Sync(PolicyVersion(version), given);
  if (!status.ok()) {
    labels.pop_back();
    return status;
  }
  weights = std::move(given);
  while (installed < version && !stopping) {
    changed.WaitUntil(mutex, SteadyClock::now() + kPatience);
  }
  return Status::Ok();
}

EngineHost::EngineHost(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<EngineHost>> EngineHost::Start(std::unique_ptr<EngineCore> core,
                                                      const WeightSet& weights,
                                                      const EngineHostOptions& options) {
  auto host = std::unique_ptr<EngineHost>(
      new EngineHost(std::make_unique<State>(std::move(core), options)));
  State& s = *host->state_;
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> prepared, s.engine.Prepare(weights));
  PACE_ASSIGN_OR_RETURN(s.pump, StartThread([&s] { s.Pump(); }));
  PACE_RETURN_IF_ERROR(s.Install(std::move(prepared), "default"));
  return host;
}

EngineHost::~EngineHost() {
  {
    const MutexLock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->engine.Stop();
  if (state_->pump.joinable()) state_->pump.join();
}

Result<Generation> EngineHost::Generate(std::string_view id, GroupRequest request,
                                        const TokenSink& sink, const Cancellation& cancellation) {
  State& s = *state_;
  const auto call = std::make_shared<Call>();
  call->id = id;
  call->wake = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!call->wake.valid()) return ErrnoStatus("eventfd");
  GroupId group;
  {
    const MutexLock lock(s.mutex);
    if (!s.failure.ok()) return s.failure;
    if (std::ssize(s.calls) >= s.options.max_requests) {
      return Unavailable(s.calls.size(), " requests are in progress: try again later");
    }
    group = request.group = GroupId(s.next_group++);
    s.totals.num_prompt_tokens += std::ssize(request.prompt_tokens);
    s.calls.emplace(group, call);
    if (sink) s.streams.Open(group, call);
    if (s.is_paused) {
      s.held.push_back(std::move(request));
    } else {
      s.engine.Submit(std::move(request));
    }
  }
  bool left = false;
  std::optional<Result<Generation>> result;
  while (!result && !left) {
    pollfd waiting[] = {{call->wake.get(), POLLIN, 0},
                        {cancellation.descriptor, cancellation.events, 0}};
    ::poll(waiting, std::size(waiting), 60'000);
    eventfd_t count = 0;
    ::eventfd_read(call->wake.get(), &count);
    if (sink) left = !sink(s.streams.Take(group));
    const MutexLock lock(s.mutex);
    if (call->result) result = std::exchange(call->result, std::nullopt);
    left = left || waiting[1].revents != 0;
  }
  if (sink) s.streams.Close(group);
  if (result) return *std::move(result);
  s.Leave(group);
  return Unavailable("the client left");
}

int64_t EngineHost::Abort(std::span<const std::string> ids) {
  const MutexLock lock(state_->mutex);
  return state_->AbortIf(
      [ids](const Call& call) { return std::find(ids.begin(), ids.end(), call.id) != ids.end(); });
}

int64_t EngineHost::AbortAll() {
  const MutexLock lock(state_->mutex);
  return state_->AbortIf([](const Call&) { return true; });
}

void EngineHost::Pause(PauseMode mode, bool clear_cache, const Cancellation& cancellation) {
  State& s = *state_;
  const MutexLock lock(s.mutex);
  const int64_t number = ++s.num_pauses;
  s.is_paused = true;
  if (mode == PauseMode::kAbort) {
    for (const auto& [group, call] : s.calls) {
      if (!s.IsHeld(group)) s.engine.Cancel(group);
    }
  }
  if (mode != PauseMode::kKeep) {
    s.engine.Resume();  // an earlier pause may have kept what has to end now
    while (s.num_in_engine() > 0 && s.num_pauses == number && !s.stopping) {
      if (IsCancelled(cancellation)) return;
      s.changed.WaitUntil(s.mutex, SteadyClock::now() + kTick);
    }
    if (s.num_pauses != number) return;
  }
  s.engine.Pause();
  if (clear_cache) s.engine.InvalidateCache();
}

void EngineHost::Resume() {
  State& s = *state_;
  const MutexLock lock(s.mutex);
  ++s.num_pauses;
  s.is_paused = false;
  for (GroupRequest& request : s.held) s.engine.Submit(std::move(request));
  s.held.clear();
  if (s.failure.ok()) s.engine.Resume();
  s.changed.NotifyAll();
}

bool EngineHost::paused() const {
  const MutexLock lock(state_->mutex);
  return state_->is_paused;
}

void EngineHost::ClearCache() {
  state_->engine.InvalidateCache();
}

Status EngineHost::LoadWeights(const std::string& folder) {
  State& s = *state_;
  // One update at a time, so that versions have an order; generation continues meanwhile.
  s.BeginUpdate();
  const Status status = [&]() -> Status {
    PACE_ASSIGN_OR_RETURN(const WeightSet weights, WeightSet::Load(s.config, folder));
    PACE_RETURN_IF_ERROR(CheckFinite(weights).At(folder));
    PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> prepared,
                          s.engine.Prepare(weights));
    return s.Install(std::move(prepared), label());
  }();
  if (status.ok()) {
    const MutexLock lock(s.mutex);
    ++s.totals.num_weight_loads;
  }
  s.EndUpdate();
  return status;
}

Status EngineHost::SetLabel(std::string given) {
  State& s = *state_;
  if (given.size() > kMaxLabelBytes) {
    return InvalidArgument("a label of ", given.size(), " bytes: must be at most ", kMaxLabelBytes);
  }
  s.BeginUpdate();
  std::shared_ptr<const DecoderWeights> present;
  {
    const MutexLock lock(s.mutex);
    if (s.labels.back() != given) present = s.weights;
  }
  const Status status =
      present == nullptr ? Status::Ok() : s.Install(std::move(present), std::move(given));
  s.EndUpdate();
  return status;
}

std::string EngineHost::label() const {
  const MutexLock lock(state_->mutex);
  return state_->labels.back();
}

Status EngineHost::health() const {
  if (!state_->failed) return Status::Ok();
  const MutexLock lock(state_->mutex);
  return state_->failure;
}

EngineHostStats EngineHost::stats() const {
  const State& s = *state_;
  const MutexLock lock(s.mutex);
  EngineHostStats stats = s.totals;
  stats.engine = s.engine.stats();
  stats.num_running = std::min(s.num_running.load(), s.num_in_engine());
  stats.num_waiting = std::ssize(s.calls) - stats.num_running;
  stats.num_blocks = s.num_blocks;
  stats.num_free_blocks = s.num_in_engine() == 0 ? s.num_blocks : s.num_free_blocks.load();
  return stats;
}

const ModelConfig& EngineHost::config() const {
  return state_->config;
}

int64_t EngineHost::num_blocks() const {
  return state_->num_blocks;
}

}  // namespace pace
