// WorkerMetrics: what each rollout worker did in a step, for the row of metrics.jsonl.
//
// Workers are numbered as they are configured: engines of the process from 0, servers in the order
// of engine.urls. A server that is lost and comes back keeps its number; its counters start anew.
//
//   WorkerMetrics workers;
//   workers.Read(0, joined, {.num_tokens = 812});
//   workers.EndStep(times.step, row);   // worker/0/tokens_per_s, ...
//
// Thread-safety: none.
#ifndef PACE_RECORD_WORKER_METRICS_H_
#define PACE_RECORD_WORKER_METRICS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "record/step_metrics.h"

namespace pace {

// Since the worker joined.
struct WorkerCounters {
  int64_t num_tokens = 0;  // sampled; a server's count when their request ends
  // Requests that have a token, and the sum of their times to the first one.
  int64_t num_first_tokens = 0;
  Seconds first_token_time{0};
  int64_t num_syncs = 0;
  Seconds sync_time{0};
  int64_t num_failures = 0;  // of calls; a loss is one
};

// The name of a metric of one worker.
std::string WorkerMetric(int64_t worker, std::string_view name);
// Rows have metrics of at most this many workers.
inline constexpr int64_t kMaxMeteredWorkers = 64;

class WorkerMetrics {
 public:
  // `life` differs whenever the worker has joined anew.
  void Read(int64_t worker, int64_t life, const WorkerCounters& counters);
  // Appends the metrics of the step that ends, and begins the next one.
  void EndStep(Seconds step, MetricsRow& row);

 private:
  struct Worker {
    int64_t life = -1;
    WorkerCounters now = {};
    WorkerCounters step = {};  // in the step under way
  };
  std::vector<Worker> workers_;
};

}  // namespace pace

#endif  // PACE_RECORD_WORKER_METRICS_H_
