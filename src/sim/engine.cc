#include "sim/engine.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace pace {
namespace {

constexpr Seconds kNotDue{std::numeric_limits<double>::infinity()};
// KV kept free when admitting, so that a preempted response does not return at
// once.
constexpr double kWatermark = 0.99;

}  // namespace

Engine::Engine(const CostModel& costs, const EngineOptions& options, SimResponses& table,
               Seconds now)
    : clock_(now), next_time_(kNotDue), costs_(costs), options_(options), table_(table) {}

void Engine::Enqueue(Seconds now, ResponseIndex response) {
  table_.responses[static_cast<size_t>(response)].state = ResponseState::kQueued;
  queue_.push_back(response);
  Wake(now);
}

void Engine::BeginSync(Seconds now, PolicyVersion version) {
  PACE_CHECK(!sync_wanted_ && phase_ != Phase::kTransferring, "a sync is under way");
  sync_wanted_ = true;
  wanted_version_ = version;
  Wake(now);
  // Nothing else happens at the end of this iteration: go there at once.
  if (phase_ != Phase::kDecoding || pause_wanted_) return;
  const bool ends = !active_.empty() && active_.back().stop == next_iteration_;
  if (!ends) BeginTransfer();
}

void Engine::BeginTransfer() {
  MoveTo(next_iteration_, next_time_);
  woken_ = false;
  sync_wanted_ = false;
  phase_ = Phase::kTransferring;
  next_time_ = clock_ + Seconds(costs_.SyncSeconds());
}

void Engine::Pause(Seconds now) {
  pause_wanted_ = true;
  Wake(now);
}

void Engine::Resume(Seconds now) {
  PACE_CHECK(phase_ == Phase::kPaused, "the engine is not paused");
  phase_ = Phase::kDecoding;
  clock_ = std::max(clock_, now);
  next_iteration_ = iteration_;
  next_time_ = clock_;
  woken_ = true;
}

void Engine::Remove(Seconds now, ResponseIndex response) {
  const auto queued = std::find(queue_.begin(), queue_.end(), response);
  if (queued != queue_.end()) {
    queue_.erase(queued);
    table_.responses[static_cast<size_t>(response)].state = ResponseState::kUnused;
    return;
  }
  const auto found = std::find_if(active_.begin(), active_.end(), [response](const Active& active) {
    return active.response == response;
  });
  if (found == active_.end()) return;
  if (phase_ == Phase::kDecoding && now > clock_) {
    const int64_t whole = WholeIterations(now);
    const Seconds span(costs_.Decode(num_active()).Span(context_, whole));
    MoveTo(iteration_ + whole, clock_ + span);
  }
  TakeOut(*found, ResponseState::kUnused, OwnRuns(response));
  active_.erase(found);
  woken_ = false;
  Wake(now);
}

// Makes the end of the iteration under way the next time to act.
void Engine::Wake(Seconds now) {
  if (phase_ != Phase::kDecoding || woken_) return;
  woken_ = true;
  if (active_.empty() || now <= clock_) {
    if (active_.empty() && now > clock_) {
      idle_time_ += now - clock_;
      clock_ = now;
    }
    next_iteration_ = iteration_;
    next_time_ = clock_;
    return;
  }
  const DecodeCurve& curve = costs_.Decode(num_active());
  const int64_t limit = active_.back().stop - iteration_;
  const int64_t count = curve.IterationsToReach(context_, (now - clock_).count(), limit);
  next_iteration_ = iteration_ + count;
  next_time_ = std::max(now, clock_ + Seconds(curve.Span(context_, count)));
}

void Engine::MoveTo(int64_t iteration, Seconds time) {
  const int64_t added = (iteration - iteration_) * num_active();
  context_ += added;
  num_tokens_ += added;
  iteration_ = iteration;
  clock_ = time;
}

int64_t Engine::WholeIterations(Seconds now) const {
  if (active_.empty() || now <= clock_) return 0;
  const DecodeCurve& curve = costs_.Decode(num_active());
  const double elapsed = (now - clock_).count();
  const int64_t limit = active_.back().stop - iteration_;
  const int64_t count = curve.IterationsToReach(context_, elapsed, limit);
  return count > 0 && curve.Span(context_, count) > elapsed ? count - 1 : count;
}

int64_t Engine::NumTokens(Seconds now) const {
  if (phase_ != Phase::kDecoding) return num_tokens_;
  return num_tokens_ + WholeIterations(now) * num_active();
}

Seconds Engine::IdleTime(Seconds now) const {
  const bool idle = phase_ == Phase::kDecoding && active_.empty() && now > clock_;
  return idle ? idle_time_ + (now - clock_) : idle_time_;
}

EngineReport Engine::Act() {
  if (phase_ == Phase::kTransferring) return FinishTransfer();
  if (phase_ == Phase::kRescoring) return FinishRescoring();
  PACE_CHECK(phase_ == Phase::kDecoding && next_time_ < kNotDue, "nothing is due");
  MoveTo(next_iteration_, next_time_);
  woken_ = false;
  if (StretchEnds()) {
    const ResponseIndex response = EndStretch();
    Continue();
    return {EngineEvent::kStretchEnded, response};
  }
  if (pause_wanted_) {
    pause_wanted_ = false;
    phase_ = Phase::kPaused;
    next_time_ = kNotDue;
    return {EngineEvent::kPaused, 0};
  }
  if (sync_wanted_) {
    BeginTransfer();
  } else {
    Continue();
  }
  return {};
}

EngineReport Engine::FinishTransfer() {
  clock_ = next_time_;
  version_ = wanted_version_;
  syncs_.push_back({iteration_, version_});
  num_interrupted_ += num_active();
  const Seconds rescore = RescoreSeconds();
  if (rescore > Seconds(0)) {
    phase_ = Phase::kRescoring;
    next_time_ = clock_ + rescore;
    rescore_time_ += rescore;
  } else {
    FinishRescoring();
  }
  return {EngineEvent::kSynced, 0};
}

EngineReport Engine::FinishRescoring() {
  if (phase_ == Phase::kRescoring) clock_ = next_time_;
  clock_ += ReprefillSeconds();
  phase_ = Phase::kDecoding;
  Continue();
  return {EngineEvent::kRescored, 0};
}

// After a change at an iteration's end: what comes next.
void Engine::Continue() {
  next_iteration_ = iteration_;
  next_time_ = clock_;
  woken_ = true;
  if (StretchEnds() || pause_wanted_ || sync_wanted_) return;
  while (num_active() > 1 && context_ + num_active() > options_.kv_capacity) Preempt();
  AdmitQueued();
  woken_ = false;
  if (active_.empty()) {
    next_time_ = kNotDue;
    return;
  }
  int64_t count = active_.back().stop - iteration_;
  if (num_active() > 1) {
    count = std::min(count, (options_.kv_capacity - context_) / num_active());
  }
  next_iteration_ = iteration_ + count;
  next_time_ = clock_ + Seconds(costs_.Decode(num_active()).Span(context_, count));
}

// Writes a response's stretch into its progress and into `runs`.
void Engine::TakeOut(const Active& active, ResponseState state, VersionRuns& runs) {
  Response& response = table_.responses[static_cast<size_t>(active.response)];
  const int64_t begin = response.stretch_begin;
  // The sync in force as the stretch began; it is among the last few.
  auto sync = syncs_.end();
  do {
    PACE_CHECK(sync != syncs_.begin(), "a response decoded before the first sync");
    --sync;
  } while (sync->iteration > begin);
  for (int64_t from = begin; from < iteration_; ++sync) {
    const auto next = sync + 1;
    const int64_t to = next == syncs_.end() ? iteration_ : std::min(iteration_, next->iteration);
    if (to > from) runs.Append(sync->version, to - from);
    from = std::max(from, to);
  }
  const int64_t context = active.ContextAt(iteration_);
  context_ -= context;
  response.num_done = static_cast<int32_t>(active.PolicyAt(iteration_));
  response.context = static_cast<int32_t>(context);
  response.kv_version = version_;
  response.left_engine = true;
  response.state = state;
}

VersionRuns& Engine::OwnRuns(ResponseIndex index) {
  Response& response = table_.responses[static_cast<size_t>(index)];
  VersionRuns& runs = table_.runs[static_cast<size_t>(index)];
  if (!response.has_runs) runs.Clear();
  response.has_runs = true;
  return runs;
}

ResponseIndex Engine::EndStretch() {
  const Active ended = active_.back();
  active_.pop_back();
  const auto index = static_cast<size_t>(ended.response);
  const Response& response = table_.responses[index];
  // Most responses have one stretch; their versions need no storage of their own.
  const bool whole = !response.left_engine && ended.stop_policy == response.num_tokens;
  if (whole && !table_.keep_runs) {
    table_.last_runs.Clear();
    TakeOut(ended, ResponseState::kInTool, table_.last_runs);
  } else {
    TakeOut(ended, ResponseState::kInTool, OwnRuns(ended.response));
  }
  return ended.response;
}

void Engine::Preempt() {
  const auto youngest =
      std::max_element(active_.begin(), active_.end(),
                       [](const Active& a, const Active& b) { return a.order < b.order; });
  const ResponseIndex index = youngest->response;
  TakeOut(*youngest, ResponseState::kQueued, OwnRuns(index));
  active_.erase(youngest);
  Response& response = table_.responses[static_cast<size_t>(index)];
  response.uncached = response.context;
  queue_.push_front(index);
  ++num_preempted_;
}

void Engine::AdmitQueued() {
  const auto room = static_cast<int64_t>(kWatermark * static_cast<double>(options_.kv_capacity));
  while (!queue_.empty() && num_active() < options_.slots) {
    const Response& response = table_.responses[static_cast<size_t>(queue_.front())];
    if (!active_.empty() && context_ + response.context + num_active() + 1 > room) return;
    const ResponseIndex index = queue_.front();
    queue_.pop_front();
    clock_ += Admit(index);
  }
}

Seconds Engine::Admit(ResponseIndex index) {
  Response& response = table_.responses[static_cast<size_t>(index)];
  const bool synced_since = response.left_engine && response.kv_version != version_;
  if (synced_since && options_.reprefill) response.uncached = response.context;
  const double uncached = response.uncached;
  double seconds =
      costs_.PrefillSeconds(PassSize::Extending(response.context - uncached, uncached));
  if (synced_since && options_.rescore && response.num_done >= options_.prefix.min_tokens) {
    const double scored =
        static_cast<double>(std::min<int64_t>(response.num_done, options_.prefix.max_tokens));
    const double rescore = costs_.RescoreSeconds(
        scored, PassSize::Extending(0, response.context - response.num_done + scored));
    rescore_time_ += Seconds(rescore);
    seconds += rescore;
  }
  response.uncached = 0;
  response.state = ResponseState::kDecoding;
  response.stretch_begin = iteration_;
  const int32_t left = response.TurnEnd() - response.num_done;
  const Active active = {.stop = iteration_ + left,
                         .stop_policy = response.num_done + left,
                         .stop_context = response.context + left,
                         .order = next_order_++,
                         .response = index};
  const auto place = std::upper_bound(active_.begin(), active_.end(), active,
                                      [](const Active& a, const Active& b) { return a.Before(b); });
  active_.insert(place, active);
  context_ += response.context;
  return Seconds(seconds);
}

Seconds Engine::RescoreSeconds() const {
  if (!options_.rescore) return Seconds(0);
  double scored = 0;
  PassSize pass;
  for (const Active& active : active_) {
    const int64_t policy = active.PolicyAt(iteration_);
    if (policy < options_.prefix.min_tokens) continue;
    const int64_t prefix = std::min(policy, options_.prefix.max_tokens);
    scored += static_cast<double>(prefix);
    pass += PassSize::Extending(
        0, static_cast<double>(active.stop_context - active.stop_policy + prefix));
  }
  return Seconds(scored > 0 ? costs_.RescoreSeconds(scored, pass) : 0);
}

Seconds Engine::ReprefillSeconds() const {
  if (!options_.reprefill || active_.empty()) return Seconds(0);
  PassSize pass;
  for (const Active& active : active_) {
    pass += PassSize::Extending(0, static_cast<double>(active.ContextAt(iteration_)));
  }
  return Seconds(costs_.PrefillSeconds(pass));
}

}  // namespace pace
