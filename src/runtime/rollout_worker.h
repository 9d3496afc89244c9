// RolloutWorker: an engine on its thread, and the thread that brings what it says
// to the driver.
//
// Thread-safety: the driver's thread alone.
#ifndef PACE_RUNTIME_ROLLOUT_WORKER_H_
#define PACE_RUNTIME_ROLLOUT_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/status.h"
#include "core/sync.h"
#include "rollout/engine.h"

namespace pace {

class RolloutWorker {
 public:
  using Deliver = std::function<void(std::vector<RolloutEvent>)>;

  // `deliver` is called on the worker's own thread.
  RolloutWorker(std::unique_ptr<EngineCore> core, Deliver deliver);
  ~RolloutWorker();
  RolloutWorker(const RolloutWorker&) = delete;
  RolloutWorker& operator=(const RolloutWorker&) = delete;

  RolloutEngine& engine() { return engine_; }

  // Stops at a token boundary. All that finished before has been delivered when
  // it returns; what is in flight comes back.
  std::vector<GroupRequest> Pause() PACE_EXCLUDES(pumping_);
  void Resume() { engine_.Resume(); }

 private:
  void Pump() PACE_EXCLUDES(pumping_);

  RolloutEngine engine_;
  Deliver deliver_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> pausing_ = false;  // the pump is to let go of the mutex
  Mutex pumping_;                      // held from taking events until they are delivered
  std::thread thread_;
};

}  // namespace pace

#endif  // PACE_RUNTIME_ROLLOUT_WORKER_H_
