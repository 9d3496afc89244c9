// RemoteWorker: a RemoteCore with sockets, time and a thread of its own.
//
//   RemoteWorker worker({.server = {.url = "http://host:8000"}, .core = options}, wake);
//   // WorkerReady or WorkerGone comes out of Wait
//   PACE_RETURN_IF_ERROR(worker.Sync(published));
//
// Thread-safety: every method. No call may be in progress when it is destroyed.
#ifndef PACE_ENGINES_REMOTE_WORKER_H_
#define PACE_ENGINES_REMOTE_WORKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "engines/dialect.h"
#include "engines/http_calls.h"
#include "engines/pause_turns.h"
#include "engines/remote_core.h"
#include "engines/weight_channel.h"
#include "rollout/worker.h"

namespace pace {

struct RemoteWorkerOptions {
  ServerAddress server = {};
  RemoteOptions core = {};
  const Dialect* dialect = &VllmDialect();
  // For WeightPath::kChannel.
  OpenWeightChannel open_channel = {};
  // For core.pauses_in_turn: shared by the servers of a run.
  std::shared_ptr<PauseTurns> turns = {};
};

class RemoteWorker final : public RolloutWorker {
 public:
  // Begins to join. `on_events`, if set, is called on the worker's thread when Wait has new
  // events; it must not call the worker.
  explicit RemoteWorker(RemoteWorkerOptions options, std::function<void()> on_events = {});
  ~RemoteWorker() override;

  void Submit(GroupRequest request) override;
  void Cancel(GroupId group) override;
  // Take and Pause wait for the server at most as long as a control call may take; then the
  // worker is gone.
  std::optional<GroupRequest> Take(GroupId group) override;
  void Continue(MemberId id, std::vector<TokenId> tool_tokens) override;
  void FinishPaused(MemberId id) override;
  Status Sync(const PublishedWeights& weights) override;
  std::vector<RolloutEvent> Wait(std::chrono::steady_clock::time_point deadline) override;
  std::vector<GroupRequest> Pause() override;
  void Resume() override;
  RolloutStats stats() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_WORKER_H_
