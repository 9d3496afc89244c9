// RunClock: the wall clock, from where a resumed run left off.
// Thread-safety: set before threads read it.
#ifndef PACE_RUNTIME_RUN_CLOCK_H_
#define PACE_RUNTIME_RUN_CLOCK_H_

#include "core/clock.h"

namespace pace {

class RunClock final : public Clock {
 public:
  Seconds Now() const override { return base_ + wall_.Now(); }
  void SetBase(Seconds base) { base_ = base - wall_.Now(); }

 private:
  WallClock wall_;
  Seconds base_{0};
};

}  // namespace pace

#endif  // PACE_RUNTIME_RUN_CLOCK_H_
