// Time as every driver sees it: seconds since the run began.
#ifndef PACE_CORE_CLOCK_H_
#define PACE_CORE_CLOCK_H_

#include <chrono>

namespace pace {

using Seconds = std::chrono::duration<double>;

// The one way to ask for the time. Virtual clocks are advanced by their driver;
// the wall clock advances by itself and may be read from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Seconds Now() const = 0;
};

class WallClock final : public Clock {
 public:
  Seconds Now() const override { return std::chrono::steady_clock::now() - start_; }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The wall clock of a run that goes on where an earlier one stopped. SetBase before other threads
// read it.
class RunClock final : public Clock {
 public:
  Seconds Now() const override { return base_ + wall_.Now(); }
  void SetBase(Seconds base) { base_ = base - wall_.Now(); }

 private:
  WallClock wall_;
  Seconds base_{0};
};

class VirtualClock final : public Clock {
 public:
  Seconds Now() const override { return now_; }
  // Never moves back: an earlier time is ignored.
  void AdvanceTo(Seconds time) {
    if (time > now_) now_ = time;
  }

 private:
  Seconds now_{0};
};

}  // namespace pace

#endif  // PACE_CORE_CLOCK_H_
