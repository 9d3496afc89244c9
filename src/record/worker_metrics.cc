#include "record/worker_metrics.h"

#include <algorithm>

#include "core/concat.h"

namespace pace {
namespace {

// What came between two readings. A counter that falls counts nothing.
WorkerCounters Between(const WorkerCounters& before, const WorkerCounters& now) {
  const auto count = [](int64_t from, int64_t to) { return std::max<int64_t>(0, to - from); };
  const auto time = [](Seconds from, Seconds to) { return std::max(Seconds(0), to - from); };
  return {.num_tokens = count(before.num_tokens, now.num_tokens),
          .num_first_tokens = count(before.num_first_tokens, now.num_first_tokens),
          .first_token_time = time(before.first_token_time, now.first_token_time),
          .num_syncs = count(before.num_syncs, now.num_syncs),
          .sync_time = time(before.sync_time, now.sync_time),
          .num_failures = count(before.num_failures, now.num_failures)};
}

void Add(const WorkerCounters& part, WorkerCounters& sum) {
  sum.num_tokens += part.num_tokens;
  sum.num_first_tokens += part.num_first_tokens;
  sum.first_token_time += part.first_token_time;
  sum.num_syncs += part.num_syncs;
  sum.sync_time += part.sync_time;
  sum.num_failures += part.num_failures;
}

}  // namespace

std::string WorkerMetric(int64_t worker, std::string_view name) {
  return Concat("worker/", worker, "/", name);
}

void WorkerMetrics::Read(int64_t worker, int64_t life, const WorkerCounters& counters) {
  if (worker < 0 || worker >= kMaxMeteredWorkers) return;
  const auto index = static_cast<size_t>(worker);
  if (index >= workers_.size()) workers_.resize(index + 1);
  Worker& known = workers_[index];
  if (life < known.life) return;
  if (life > known.life) known.now = {};
  known.life = life;
  Add(Between(known.now, counters), known.step);
  known.now = counters;
}

void WorkerMetrics::EndStep(Seconds step, MetricsRow& row) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    const WorkerCounters& done = workers_[i].step;
    const auto put_worker = [&](std::string_view name, double value) {
      row.emplace_back(WorkerMetric(static_cast<int64_t>(i), name), value);
    };
    const double seconds = step.count();
    put_worker("tokens_per_s", seconds > 0 ? static_cast<double>(done.num_tokens) / seconds : 0);
    if (done.num_first_tokens > 0) {
      const Seconds mean = done.first_token_time / static_cast<double>(done.num_first_tokens);
      put_worker("first_token_s", mean.count());
    }
    put_worker("pauses", static_cast<double>(done.num_syncs));
    put_worker("pause_s", done.sync_time.count());
    put_worker("failures", static_cast<double>(done.num_failures));
    workers_[i].step = {};
  }
}

}  // namespace pace
