#include "engines/pause_turns.h"

#include <algorithm>

namespace pace {

std::unique_ptr<PauseTurns::Turn> PauseTurns::Enter(std::function<void()> on_allowed) {
  std::unique_ptr<Turn> turn(new Turn(*this, std::move(on_allowed)));
  const MutexLock lock(mutex_);
  ++num_servers_;
  return turn;
}

void PauseTurns::Allow() {
  while (!waiting_.empty() && num_paused_ < std::max<int64_t>(1, num_servers_ / 2)) {
    Turn& turn = *waiting_.front();
    waiting_.pop_front();
    ++num_paused_;
    turn.state_ = Turn::State::kAllowed;
    turn.on_allowed_();
  }
}

void PauseTurns::Leave(Turn& turn, bool for_good) {
  const MutexLock lock(mutex_);
  if (turn.state_ == Turn::State::kWaiting) std::erase(waiting_, &turn);
  if (turn.state_ >= Turn::State::kAllowed) --num_paused_;
  turn.state_ = Turn::State::kIdle;
  if (for_good) --num_servers_;
  Allow();
}

PauseTurns::Turn::~Turn() {
  turns_.Leave(*this, /*for_good=*/true);
}

void PauseTurns::Turn::Ask() {
  const MutexLock lock(turns_.mutex_);
  if (state_ != State::kIdle) return;
  state_ = State::kWaiting;
  turns_.waiting_.push_back(this);
  turns_.Allow();
}

bool PauseTurns::Turn::TakeAllowed() {
  const MutexLock lock(turns_.mutex_);
  if (state_ != State::kAllowed) return false;
  state_ = State::kTaken;
  return true;
}

void PauseTurns::Turn::End() {
  turns_.Leave(*this, /*for_good=*/false);
}

}  // namespace pace
