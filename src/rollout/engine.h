// RolloutEngine: an EngineCore on its own thread.
//
// Calls may come from any thread; each takes effect at a token boundary, in the order of the
// calls. Wait returns events in the order in which they happened. The destructor stops the
// engine at the next boundary and joins its thread. Engines of one process share nothing.
//
//   RolloutEngine engine(std::move(core));
//   PACE_RETURN_IF_ERROR(engine.Sync(PolicyVersion(0), weights));
//   engine.Submit(request);
//   for (RolloutEvent& event : engine.Wait(deadline)) ...
//
// Thread-safety: every method. No call may be in progress when it is destroyed.
#ifndef PACE_ROLLOUT_ENGINE_H_
#define PACE_ROLLOUT_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "core/status.h"
#include "rollout/engine_core.h"

namespace pace {

// The sync to this version took effect. (Never reported for a drained sync that a newer one
// replaced.)
struct WeightsSynced {
  PolicyVersion version;
};
// A response met a stop rule and waits for Continue or FinishPaused.
struct ResponsePaused {
  MemberId id;
  PartialResponse response;  // so far
};
// The cancelled group, as a request that resumes it.
struct GroupCancelled {
  GroupRequest request;
};
// Submit's request is invalid.
struct GroupRefused {
  GroupId group;
  Status error;
};
// A pass failed. The engine paused itself and lost nothing: Resume tries again, Stop returns
// the responses in flight.
struct DeviceFailed {
  Status error;
};

using RolloutEvent = std::variant<FinishedResponse, ResponsePaused, WeightsSynced, GroupCancelled,
                                  GroupRefused, DeviceFailed>;

struct RolloutStats {
  int64_t num_passes = 0;
  int64_t num_sampled_tokens = 0;
  int64_t num_reprefill_rows = 0;
  int64_t num_scored_rows = 0;
  int64_t num_preemptions = 0;
  std::chrono::duration<double> busy_time{0};   // in passes
  std::chrono::duration<double> score_time{0};  // of busy_time, scoring cached hidden states
};

class RolloutEngine {
 public:
  // `on_events`, if set, is called on the engine's thread when Wait has new events; it must not
  // call the engine.
  explicit RolloutEngine(std::unique_ptr<EngineCore> core, std::function<void()> on_events = {});
  ~RolloutEngine();

  void Submit(GroupRequest request);
  // Does nothing if the group has no unfinished response by then.
  void Cancel(GroupId group);
  // A paused response continues after these tool tokens, or finishes (see EngineCore). Tokens
  // that do not fit finish it, too. Does nothing if the response is not paused, or was cancelled
  // meanwhile.
  void Continue(MemberId id, std::vector<TokenId> tool_tokens);
  void FinishPaused(MemberId id);
  // Prepares on the calling thread; the engine installs the weights at its next token boundary.
  // Refused: weights that do not fit the device, and a version that is not newer.
  Status Sync(PolicyVersion version, const WeightSet& weights);

  // The events since the last call; waits for the first one until the deadline. Empty: the
  // deadline passed, or the engine has stopped.
  std::vector<RolloutEvent> Wait(std::chrono::steady_clock::time_point deadline);

  // Pauses at a token boundary and returns a copy of the responses in flight, for a checkpoint;
  // Wait returns all that finished before. Other calls still take effect until Resume.
  std::vector<GroupRequest> Pause();
  void Resume();
  // Ends the thread and returns the responses in flight. Later calls do nothing (Sync returns an
  // error), except for Wait, which still returns earlier events.
  std::vector<GroupRequest> Stop();

  RolloutStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_ENGINE_H_
