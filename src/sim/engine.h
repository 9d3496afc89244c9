// Engine: one rollout engine with continuous batching, under virtual time.
//
// All decoding responses advance one token per iteration, in lock-step. Between two changes (a
// response ends or leaves, the KV cache is full, a command arrives) the time of many iterations
// has a closed form. So the simulation does not go token by token, and the versions of a
// response's tokens follow from the iterations at which the engine synced.
//
// Rules:
// - A command takes effect at the end of the current iteration.
// - A queued response is admitted, first in, first out, when a slot and KV for its whole
//   context are free. Its prefill delays all others.
// - When the next iteration would overflow the KV cache, the youngest response is preempted:
//   it goes to the front of the queue and is prefilled again.
// - A response in a tool call leaves its slot and KV. Its context stays cached; it is
//   prefilled again only if a sync that re-prefills came in between.
// - A sync pauses decoding for the transfer, then rescores interrupted prefixes, then
//   re-prefills the decoding responses.
//
// The driver calls Act at next_time() and reads the report.
// Thread-safety: none.
#ifndef PACE_SIM_ENGINE_H_
#define PACE_SIM_ENGINE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "cluster/cost_model.h"
#include "config/run_options.h"
#include "core/clock.h"
#include "core/version.h"
#include "sim/response.h"

namespace pace {

struct EngineOptions {
  int64_t slots = 256;
  int64_t kv_capacity = 0;  // context tokens
  bool reprefill = true;    // at a sync
  bool rescore = false;     // whether interrupted prefixes cost rescoring
  PrefixOptions prefix;
};

enum class EngineEvent {
  kNothing,
  kStretchEnded,  // `response` is out: its turn is over
  kSynced,        // the new weights are in
  kRescored,
  kPaused,
};

struct EngineReport {
  EngineEvent event = EngineEvent::kNothing;
  ResponseIndex response = 0;
};

class Engine {
 public:
  // Costs, options and table outlive the engine, which is ready at `now`.
  Engine(const CostModel& costs, const EngineOptions& options, SimResponses& table, Seconds now);

  // Commands; `now` never falls.
  void Enqueue(Seconds now, ResponseIndex response);
  void BeginSync(Seconds now, PolicyVersion version);
  // Removes a decoding or queued response at once; it keeps its progress up to the last whole
  // iteration.
  void Remove(Seconds now, ResponseIndex response);
  // Stops decoding at the end of the iteration (reports kPaused) until Resume.
  void Pause(Seconds now);
  void Resume(Seconds now);

  // When Act is due; infinite while nothing is.
  Seconds next_time() const { return next_time_; }
  // Does what is due and reports it.
  EngineReport Act();

  bool busy() const { return !active_.empty() || !queue_.empty(); }
  bool rescoring() const { return phase_ == Phase::kRescoring; }
  int64_t num_active() const { return static_cast<int64_t>(active_.size()); }
  PolicyVersion version() const { return version_; }
  // Policy tokens of whole iterations up to `now`, since the engine was made.
  int64_t NumTokens(Seconds now) const;
  // Time without a response and without a sync, up to `now`.
  Seconds IdleTime(Seconds now) const;
  Seconds rescore_time() const { return rescore_time_; }
  int64_t num_interrupted() const { return num_interrupted_; }
  int64_t num_preempted() const { return num_preempted_; }

 private:
  enum class Phase { kDecoding, kTransferring, kRescoring, kPaused };
  // As of the end of the stretch, so that decoding changes nothing here.
  struct Active {
    int64_t stop = 0;          // iteration at which the stretch ends
    int32_t stop_policy = 0;   // policy tokens then
    int32_t stop_context = 0;  // context tokens then
    int32_t order = 0;         // of admission
    ResponseIndex response = 0;

    int64_t PolicyAt(int64_t iteration) const { return stop_policy - (stop - iteration); }
    int64_t ContextAt(int64_t iteration) const { return stop_context - (stop - iteration); }
    // Later ones first, ties by response: the next to end is last.
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
  // The version runs of a response; cleared on first use.
  VersionRuns& OwnRuns(ResponseIndex index);
  void Preempt();
  void AdmitQueued();
  Seconds Admit(ResponseIndex index);
  void Continue();
  void TakeOut(const Active& active, ResponseState state, VersionRuns& runs);
  Seconds RescoreSeconds() const;
  Seconds ReprefillSeconds() const;

  // Members that every event touches, in few cache lines.
  Phase phase_ = Phase::kDecoding;
  bool woken_ = false;  // next_time_ is already the end of this iteration
  bool sync_wanted_ = false;
  bool pause_wanted_ = false;
  int32_t next_order_ = 0;
  // `iteration_` iterations were done at `clock_`, and `context_` tokens are in KV.
  Seconds clock_;
  int64_t iteration_ = 0;
  int64_t context_ = 0;
  Seconds next_time_;
  int64_t next_iteration_ = 0;  // while decoding
  // Sorted, not a heap: most events read only the last entry.
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
