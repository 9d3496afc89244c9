// RolloutWorker: whoever generates for a run, in this process or elsewhere.
//
// Calls take effect in their order, each at a token boundary. Everything that happened comes out of
// Wait, in the order in which it happened. A worker that is elsewhere can be lost: WorkerGone is
// then its last event, its unfinished responses are gone with it, and later calls do nothing.
//
// Thread-safety: every method. No call may be in progress when it is destroyed.
#ifndef PACE_ROLLOUT_WORKER_H_
#define PACE_ROLLOUT_WORKER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/status.h"
#include "core/version.h"
#include "model/decoder.h"
#include "model/weight_set.h"
#include "rollout/request.h"

namespace pace {

// Weights that workers serve, in every form that a worker of the run takes.
struct PublishedWeights {
  PolicyVersion version{};
  WeightSet weights = {};
  // Engines of this process: laid out once, shared by all of them.
  std::shared_ptr<const DecoderWeights> prepared = {};
  // Servers: a folder of safetensors that they can read, and what keeps it there.
  std::string folder = {};
  std::shared_ptr<const void> folder_hold = {};
};

// The worker can be given weights and requests. Engines of this process are ready from the start
// and do not say so.
struct WorkerReady {};
enum class Loss {
  kLost,     // it may return
  kUnfit,    // it is not what the run needs: another model, or it keeps us out
  kForeign,  // another run uses it, too
};
struct WorkerGone {
  Status error;
  Loss loss = Loss::kLost;
};
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
                                  GroupRefused, DeviceFailed, WorkerReady, WorkerGone>;

struct RolloutStats {
  int64_t num_passes = 0;
  int64_t num_sampled_tokens = 0;
  int64_t num_reprefill_rows = 0;
  int64_t num_scored_rows = 0;
  int64_t num_preemptions = 0;
  std::chrono::duration<double> busy_time{0};   // in passes
  std::chrono::duration<double> score_time{0};  // of busy_time, scoring cached hidden states
  // Requests that have a token, and the sum of their times from submission to the first one. A
  // response that is sent again is a request of its own.
  int64_t num_first_tokens = 0;
  std::chrono::duration<double> first_token_time{0};
  // Weight syncs that took effect, and the time in which they kept the worker from generating.
  int64_t num_syncs = 0;
  std::chrono::duration<double> sync_time{0};
  // Calls that failed: a server's alone.
  int64_t num_failures = 0;
};

class RolloutWorker {
 public:
  virtual ~RolloutWorker() = default;

  virtual void Submit(GroupRequest request) = 0;
  // Does nothing if the group has no unfinished response by then.
  virtual void Cancel(GroupId group) = 0;
  // Cancels at the next token boundary, waits for it and returns what was unfinished, if
  // anything was. No GroupCancelled follows.
  virtual std::optional<GroupRequest> Take(GroupId group) = 0;
  // A paused response continues after these tool tokens, or finishes. Tokens that do not fit
  // finish it, too. Does nothing if the response is not paused, or was cancelled meanwhile.
  virtual void Continue(MemberId id, std::vector<TokenId> tool_tokens) = 0;
  virtual void FinishPaused(MemberId id) = 0;
  // The weights of the next tokens. Refused: a version that is not newer, or a worker that stopped.
  virtual Status Sync(const PublishedWeights& weights) = 0;

  // The events since the last call; waits for the first one until the deadline. Empty: the
  // deadline passed, or the worker has stopped.
  virtual std::vector<RolloutEvent> Wait(std::chrono::steady_clock::time_point deadline) = 0;

  // Pauses at a token boundary and returns a copy of the responses in flight, for a checkpoint;
  // Wait returns all that finished before. Other calls still take effect until Resume.
  virtual std::vector<GroupRequest> Pause() = 0;
  virtual void Resume() = 0;

  virtual RolloutStats stats() const = 0;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_WORKER_H_
