// ToolPool: tool calls of all engines, a bounded number of them at once.
//
// Calls wait in the order they are made. The simulator and the lab share the distribution of
// latencies. Thread-safety: none.
#ifndef PACE_CLUSTER_TOOL_POOL_H_
#define PACE_CLUSTER_TOOL_POOL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "config/workload_options.h"
#include "core/clock.h"
#include "core/ids.h"

namespace pace {

// The latency of the call that ends a turn, turns counting from 0: lognormal, a function of
// its arguments.
Seconds ToolLatency(const WorkloadOptions& options, uint64_t seed, PromptIndex prompt,
                    int64_t member, int64_t turn);

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

  // Adds a call that was made before and returns at `end`. Restoring all unreturned calls, in
  // any order, restores the pool.
  void Restore(Seconds end) {
    if (concurrency_ == 0) return;
    ends_.push(end);
    if (static_cast<int64_t>(ends_.size()) > concurrency_) ends_.pop();
  }

 private:
  int64_t concurrency_;
  // When the `concurrency` latest calls end.
  std::priority_queue<Seconds, std::vector<Seconds>, std::greater<>> ends_;
};

}  // namespace pace

#endif  // PACE_CLUSTER_TOOL_POOL_H_
