#include "runtime/rollout_worker.h"

#include <chrono>
#include <utility>

namespace pace {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How long a pause may have to wait for the pump.
constexpr std::chrono::milliseconds kPumpWait(10);
constexpr std::chrono::milliseconds kYield(1);

}  // namespace

RolloutWorker::RolloutWorker(std::unique_ptr<EngineCore> core, Deliver deliver)
    : engine_(std::move(core)), deliver_(std::move(deliver)), thread_([this] { Pump(); }) {}

RolloutWorker::~RolloutWorker() {
  stopping_ = true;
  (void)engine_.Stop();
  thread_.join();
}

void RolloutWorker::Pump() {
  while (!stopping_) {
    if (pausing_) {
      // Mutexes are not fair: the one who pauses would wait for long.
      std::this_thread::sleep_for(kYield);
      continue;
    }
    const MutexLock lock(pumping_);
    std::vector<RolloutEvent> events = engine_.Wait(SteadyClock::now() + kPumpWait);
    if (!events.empty()) deliver_(std::move(events));
  }
}

std::vector<GroupRequest> RolloutWorker::Pause() {
  std::vector<GroupRequest> in_flight = engine_.Pause();
  pausing_ = true;
  {
    const MutexLock lock(pumping_);
    std::vector<RolloutEvent> events = engine_.Wait(SteadyClock::now());
    if (!events.empty()) deliver_(std::move(events));
  }
  pausing_ = false;
  return in_flight;
}

}  // namespace pace
