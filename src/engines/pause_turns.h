// PauseTurns: at most half of the servers of a run are paused for new weights at a time, at least
// one; the others generate.
//
//   PauseTurns turns;
//   const auto turn = turns.Enter(wake);  // for each server, while it is there
//   turn->Ask();  // wake is called, at once or when others have ended their turns
//   if (turn->TakeAllowed()) Pause();
//   turn->End();
//
// First come, first served. A turn that is destroyed ends. `on_allowed` is called on the thread of
// whoever asks or ends, must be short and must not call PauseTurns; never after the turn's end.
// Thread-safety: every method; one thread at a time for each turn.
#ifndef PACE_ENGINES_PAUSE_TURNS_H_
#define PACE_ENGINES_PAUSE_TURNS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "core/mutex.h"

namespace pace {

class PauseTurns {
 public:
  class Turn {
   public:
    ~Turn();
    void Ask();
    // Whether it was allowed since the last call.
    bool TakeAllowed();
    void End();

   private:
    friend class PauseTurns;
    enum class State { kIdle, kWaiting, kAllowed, kTaken };
    Turn(PauseTurns& turns, std::function<void()> on_allowed)
        : turns_(turns), on_allowed_(std::move(on_allowed)) {}

    PauseTurns& turns_;
    const std::function<void()> on_allowed_;
    State state_ = State::kIdle;  // guarded by turns_.mutex_
  };

  // Turns are destroyed before this.
  std::unique_ptr<Turn> Enter(std::function<void()> on_allowed) PACE_EXCLUDES(mutex_);

 private:
  // Allows as many as may be.
  void Allow() PACE_REQUIRES(mutex_);
  void Leave(Turn& turn, bool for_good) PACE_EXCLUDES(mutex_);

  Mutex mutex_;
  int64_t num_servers_ PACE_GUARDED_BY(mutex_) = 0;
  int64_t num_paused_ PACE_GUARDED_BY(mutex_) = 0;
  std::deque<Turn*> waiting_ PACE_GUARDED_BY(mutex_);
};

}  // namespace pace

#endif  // PACE_ENGINES_PAUSE_TURNS_H_
