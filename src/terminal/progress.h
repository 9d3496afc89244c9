// Progress on stderr: a bar that redraws itself on a terminal, a line now and
// then elsewhere.
//
// Several runs may report at once; the bar shows their sum.
// Thread-safety: Update may be called from any thread.
#ifndef PACE_TERMINAL_PROGRESS_H_
#define PACE_TERMINAL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/mutex.h"

namespace pace {

class Progress {
 public:
  // `what` names the unit: "steps".
  Progress(std::string title, std::string what, size_t num_parts);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Part `part` has done this much of that much.
  void Update(size_t part, int64_t done, int64_t total) PACE_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(Clock::time_point now) PACE_REQUIRES(mutex_);

  const std::string title_;
  const std::string what_;
  const bool is_terminal_;
  const Clock::time_point start_;

  Mutex mutex_;
  std::vector<int64_t> done_ PACE_GUARDED_BY(mutex_);
  std::vector<int64_t> total_ PACE_GUARDED_BY(mutex_);
  Clock::time_point last_drawn_ PACE_GUARDED_BY(mutex_);
  bool drawn_ PACE_GUARDED_BY(mutex_) = false;
};

}  // namespace pace

#endif  // PACE_TERMINAL_PROGRESS_H_
