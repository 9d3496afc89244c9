// RolloutEngine: an EngineCore on a thread of its own.
//
// Calls may come from any thread; each takes effect at a token boundary, in the
// order of the calls. What happened arrives through Wait, in the order it
// happened. Destroying an engine at any moment stops it at the next boundary
// and joins its thread. Two engines in one process share nothing.
//
//   RolloutEngine engine(std::move(core));
//   PACE_RETURN_IF_ERROR(engine.Sync(PolicyVersion(0), weights));
//   engine.Submit(request);
//   for (RolloutEvent& event : engine.Wait(deadline)) ...
//
// Thread-safety: every method; no call may be under way when it is destroyed.
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

// The sync to this version took effect. (A drained sync that a newer one
// replaced never does.)
struct WeightsSynced {
  PolicyVersion version;
};
// A response met a stop and waits for Continue or EndRest.
struct ResponseRested {
  MemberId id;
  PartialResponse response;  // so far
};
// What Cancel took back, as a request that resumes it.
struct GroupCancelled {
  GroupRequest request;
};
// Submit's request breaks a rule.
struct GroupRefused {
  GroupId group;
  Status error;
};
// A pass failed. The engine has paused itself and lost nothing: Resume tries
// again, Stop hands out what is in flight.
struct DeviceFailed {
  Status error;
};

using RolloutEvent = std::variant<FinishedResponse, ResponseRested, WeightsSynced, GroupCancelled,
                                  GroupRefused, DeviceFailed>;

struct RolloutStats {
  int64_t num_passes = 0;
  int64_t num_sampled_tokens = 0;
  int64_t num_rebuilt_rows = 0;
  int64_t num_scored_rows = 0;
  int64_t num_preemptions = 0;
  std::chrono::duration<double> busy_time{0};   // in passes
  std::chrono::duration<double> score_time{0};  // of busy_time, in scores from kept states
};

class RolloutEngine {
 public:
  // `on_events`, where given, is called on the engine's thread after events have
  // come for Wait; it must not call the engine.
  explicit RolloutEngine(std::unique_ptr<EngineCore> core, std::function<void()> on_events = {});
  ~RolloutEngine();

  void Submit(GroupRequest request);
  // Nothing happens if nothing of the group is unfinished by then.
  void Cancel(GroupId group);
  // A response that rests reads these tokens and goes on, or ends (EngineCore's
  // Continue, EndRest). Tokens that it cannot take end it, too. Nothing happens if it
  // does not rest, or was cancelled meanwhile.
  void Continue(MemberId id, std::vector<TokenId> given);
  void EndRest(MemberId id);
  // Prepares on the calling thread; the engine swaps at its next boundary.
  // Refused: weights the device cannot take, and a version that is not newer.
  Status Sync(PolicyVersion version, const WeightSet& weights);

  // What happened since the last call; waits for the first event until the
  // deadline. Empty: the deadline passed, or the engine has stopped.
  std::vector<RolloutEvent> Wait(std::chrono::steady_clock::time_point deadline);

  // Pauses at a token boundary and hands out a copy of what is in flight, for a
  // checkpoint; all that finished before is in Wait. Other calls still take
  // effect meanwhile. Resume goes on.
  std::vector<GroupRequest> Pause();
  void Resume();
  // Ends the thread and hands out what was in flight. Later calls do nothing
  // (Sync says so), but for Wait, which hands out what happened before.
  std::vector<GroupRequest> Stop();

  RolloutStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_ENGINE_H_
