#include "runtime/worker_slots.h"

#include <algorithm>
#include <utility>

namespace pace {
namespace {

WorkerCounters CountersOf(const RolloutStats& stats) {
  return {.num_tokens = stats.num_sampled_tokens,
          .num_first_tokens = stats.num_first_tokens,
          .first_token_time = stats.first_token_time,
          .num_syncs = stats.num_syncs,
          .sync_time = stats.sync_time,
          .num_failures = stats.num_failures};
}

}  // namespace

bool WorkerSlots::Lose(size_t worker) {
  Read(worker);
  WorkerSlot& slot = slots_[worker];
  const RolloutStats stats = slot.worker->stats();
  lost_.num_sampled_tokens += stats.num_sampled_tokens;
  lost_.busy_time += stats.busy_time;
  slot.worker.reset();
  slot.awaited_sync.reset();
  return std::exchange(slot.joined, false);
}

double WorkerSlots::count() const {
  const auto count = std::count_if(slots_.begin(), slots_.end(),
                                   [](const WorkerSlot& slot) { return slot.worker != nullptr; });
  return static_cast<double>(std::max<std::ptrdiff_t>(1, count));
}

Seconds WorkerSlots::ScoreTime() const {
  Seconds total{0};
  for (const WorkerSlot& slot : slots_) {
    if (slot.worker != nullptr) total += slot.worker->stats().score_time;
  }
  return total;
}

Seconds WorkerSlots::BusyTime() const {
  Seconds total = lost_.busy_time;
  for (const WorkerSlot& slot : slots_) {
    if (slot.worker != nullptr) total += slot.worker->stats().busy_time;
  }
  return total;
}

int64_t WorkerSlots::SampledTokens() const {
  int64_t total = lost_.num_sampled_tokens;
  for (const WorkerSlot& slot : slots_) {
    if (slot.worker != nullptr) total += slot.worker->stats().num_sampled_tokens;
  }
  return total;
}

void WorkerSlots::Read(size_t worker) {
  const WorkerSlot& slot = slots_[worker];
  if (slot.worker == nullptr || !slot.joined) return;
  metrics_.Read(static_cast<int64_t>(slot.number), static_cast<int64_t>(worker),
                CountersOf(slot.worker->stats()));
}

void WorkerSlots::EndStep(Seconds step, MetricList& metrics) {
  for (size_t i = 0; i < slots_.size(); ++i) Read(i);
  MetricsRow row;
  metrics_.EndStep(step, row);
  for (auto& [name, value] : row) metrics.push_back({std::move(name), value, 1});
}

}  // namespace pace
