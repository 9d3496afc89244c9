// RolloutEngine: an EngineCore on its own thread, the RolloutWorker of this process.
//
// The destructor stops the engine at the next token boundary and joins its thread. Engines of one
// process share nothing.
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
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "rollout/engine_core.h"
#include "rollout/worker.h"

namespace pace {

// Called on the engine's thread after every pass, for streaming: StepReport::sampled names the
// responses that grew, EngineCore::Peek has their tokens unless they finished.
using PassObserver = std::function<void(const EngineCore&, const StepReport&)>;

class RolloutEngine final : public RolloutWorker {
 public:
  // `on_events`, if set, is called on the engine's thread when Wait has new events. Neither it nor
  // the observer may call the engine or wait for one who does.
  explicit RolloutEngine(std::unique_ptr<EngineCore> core, std::function<void()> on_events = {},
                         PassObserver on_pass = {});
  ~RolloutEngine() override;

  void Submit(GroupRequest request) override;
  void Cancel(GroupId group) override;
  std::optional<GroupRequest> Take(GroupId group) override;
  void Continue(MemberId id, std::vector<TokenId> tool_tokens) override;
  void FinishPaused(MemberId id) override;
  // Lays weights out for this engine's device, on the calling thread. Engines of the same
  // settings share the result. Refused: weights that do not fit the device.
  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const;
  // The engine installs the prepared weights at its next token boundary.
  Status Sync(const PublishedWeights& weights) override;
  Status Sync(PolicyVersion version, std::shared_ptr<const DecoderWeights> prepared);
  // Prepare and Sync.
  Status Sync(PolicyVersion version, const WeightSet& weights);
  // Every response is re-prefilled before its next token (see EngineCore).
  void InvalidateCache();

  std::vector<RolloutEvent> Wait(std::chrono::steady_clock::time_point deadline) override;
  std::vector<GroupRequest> Pause() override;
  void Resume() override;
  // Ends the thread and returns the responses in flight. Later calls do nothing (Sync returns an
  // error), except for Wait, which still returns earlier events.
  std::vector<GroupRequest> Stop();

  RolloutStats stats() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_ENGINE_H_
