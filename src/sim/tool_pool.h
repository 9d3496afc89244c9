// ToolPool: tool calls of all engines, a bounded number of them at once.
//
// Calls wait in the order they are made. Thread-safety: none.
#ifndef PACE_SIM_TOOL_POOL_H_
#define PACE_SIM_TOOL_POOL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "core/clock.h"

namespace pace {

class ToolPool {
 public:
  // 0 = any number at once.
  explicit ToolPool(int64_t concurrency) : concurrency_(concurrency) {}

  // When a call made now that runs for `latency` returns. `now` never falls.
  Seconds Call(Seconds now, Seconds latency) {
    if (concurrency_ == 0) return now + latency;
    Seconds start = now;
    if (static_cast<int64_t>(ends_.size()) == concurrency_) {
      start = std::max(now, ends_.top());
      ends_.pop();
    }
    ends_.push(start + latency);
    return start + latency;
  }

 private:
  int64_t concurrency_;
  // When the places taken last become free.
  std::priority_queue<Seconds, std::vector<Seconds>, std::greater<>> ends_;
};

}  // namespace pace

#endif  // PACE_SIM_TOOL_POOL_H_
