// Engine: one rollout engine with continuous batching, under virtual time.
//
// All decoding responses advance one token per iteration, in lock-step. Between
// two changes (a response ends or leaves, KV runs out, a command arrives) the
// time of many iterations has a closed form, so nothing goes token by token,
// and the versions of a response's tokens follow from the iterations at which
// the engine synced.
//
// Rules. A command takes effect at the end of the iteration under way. A slot
// and KV for its whole context admit a response from the queue, first in, first
// out; prefill delays everyone. When the next iteration would overflow the KV,
// the youngest response is preempted: it queues first in line and is prefilled
// anew. A response in a tool call leaves slot and KV; its prefix stays cached,
// so it is prefilled anew only if a sync that rebuilds KV came in between. A
// sync pauses decoding for the transfer, then rescores interrupted prefixes,
// then rebuilds the KV of decoding responses.
//
// The driver calls Act at next_time() and reads what happened.
// Thread-safety: none.
#ifndef PACE_SIM_ENGINE_H_
#define PACE_SIM_ENGINE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "cluster/cost_model.h"
#include "core/clock.h"
#include "core/version.h"
#include "sim/engine_report.h"
#include "sim/response.h"

namespace pace {

class Engine {
 public:
  // Costs, options and table outlive the engine, which is ready at `now`.
  Engine(const CostModel& costs, const EngineOptions& options, SimResponses& table, Seconds now);

  // Commands; `now` never falls.
  void Enqueue(Seconds now, ResponseIndex response);
  void BeginSync(Seconds now, PolicyVersion version);
  // Takes a decoding or queued response out at once; its progress is kept up to
  // the last whole iteration.
  void Remove(Seconds now, ResponseIndex response);
  // Stops decoding at the end of the iteration (reports kPaused) until Resume.
  void Pause(Seconds now);
  void Resume(Seconds now);

  // When Act is due; infinite while nothing is.
  Seconds next_time() const { return next_time_; }
  // Does what is due and says what it was.
  EngineReport Act();

  // Fetches what the next Act will look at into the cache, in two rounds: what
  // the first asks for has arrived by the second.
  void PrefetchActive() const {
    if (!active_.empty()) __builtin_prefetch(&active_.back());
    if (!syncs_.empty()) __builtin_prefetch(&syncs_.back());
  }
  void PrefetchResponse() const {
    if (active_.empty()) return;
    __builtin_prefetch(&table_.responses[static_cast<size_t>(active_.back().response)]);
  }

  bool busy() const { return !active_.empty() || !queue_.empty(); }
  bool rescoring() const { return phase_ == Phase::kRescoring; }
  int64_t num_active() const { return static_cast<int64_t>(active_.size()); }
  PolicyVersion version() const { return version_; }
  // Policy tokens of whole iterations up to `now`, since the engine was made.
  int64_t NumTokens(Seconds now) const;
  // Without a response and without a sync under way, up to `now`.
  Seconds IdleTime(Seconds now) const;
  Seconds rescore_time() const { return rescore_time_; }
  int64_t num_interrupted() const { return num_interrupted_; }
  int64_t num_preempted() const { return num_preempted_; }

 private:
  enum class Phase { kDecoding, kTransferring, kRescoring, kPaused };
  // Held as of the end of the stretch, so that decoding changes nothing here.
  struct Active {
    int64_t stop = 0;          // iteration at which the stretch ends
    int32_t stop_policy = 0;   // policy tokens then
    int32_t stop_context = 0;  // context tokens then
    int32_t order = 0;         // of admission
    ResponseIndex response = 0;

    int64_t PolicyAt(int64_t iteration) const { return stop_policy - (stop - iteration); }
    int64_t ContextAt(int64_t iteration) const { return stop_context - (stop - iteration); }
    // Later ones first, ties by response: the next to end stands last.
    bool Before(const Active& other) const {
      return stop != other.stop ? stop > other.stop : response > other.response;
    }
  };
  struct SyncPoint {
    int64_t iteration;
    PolicyVersion version;
  };

  bool StretchEnds() const { return !active_.empty() && active_.back().stop == iteration_; }
  void Wake(Seconds now);
  void MoveTo(int64_t iteration, Seconds time);
  void BeginTransfer();
  int64_t WholeIterations(Seconds now) const;
  EngineReport FinishTransfer();
  EngineReport FinishRescoring();
  ResponseIndex EndStretch();
  // Where a response's versions are kept; cleared on first use.
  VersionRuns& OwnRuns(ResponseIndex index);
  void Preempt();
  void AdmitQueued();
  Seconds Admit(ResponseIndex index);
  void Continue();
  void TakeOut(const Active& active, ResponseState state, VersionRuns& runs);
  Seconds RescoreSeconds() const;
  Seconds RebuildSeconds() const;

  // What every event touches stands together.
  Phase phase_ = Phase::kDecoding;
  bool woken_ = false;  // next_time_ is the end of this iteration already
  bool sync_wanted_ = false;
  bool pause_wanted_ = false;
  int32_t next_order_ = 0;
  // `iteration_` iterations were done at `clock_`, and `context_` tokens are in KV.
  Seconds clock_;
  int64_t iteration_ = 0;
  int64_t context_ = 0;
  Seconds next_time_;
  int64_t next_iteration_ = 0;  // while decoding
  // Sorted rather than a heap: most events look at the last entry alone.
  std::vector<Active> active_;
  std::vector<SyncPoint> syncs_;
  const CostModel& costs_;
  const EngineOptions& options_;
  SimResponses& table_;
  std::deque<ResponseIndex> queue_;
  PolicyVersion version_, wanted_version_;

  int64_t num_tokens_ = 0;
  int64_t num_interrupted_ = 0, num_preempted_ = 0;
  Seconds idle_time_{0}, rescore_time_{0};
};

}  // namespace pace

#endif  // PACE_SIM_ENGINE_H_
