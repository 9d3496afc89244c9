// WorkerSlots: the rollout workers of a run by id, and what they have done.
//
// The id of a worker is its index. A worker that is lost leaves an empty slot, and its work stays
// counted.
//
// Thread-safety: none.
#ifndef PACE_RUNTIME_WORKER_SLOTS_H_
#define PACE_RUNTIME_WORKER_SLOTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/version.h"
#include "record/worker_metrics.h"
#include "rollout/worker.h"
#include "train/math/metric.h"

namespace pace {

struct WorkerSlot {
  std::unique_ptr<RolloutWorker> worker = {};  // null: lost
  std::optional<PolicyVersion> awaited_sync = {};
  std::optional<PolicyVersion> given = {};  // the last version that it was told to serve
  size_t number = 0;    // of the engine in the process, or of the server in the fleet
  bool joined = false;  // the coordinator knows it
};

class WorkerSlots {
 public:
  size_t size() const { return slots_.size(); }
  WorkerSlot& operator[](size_t worker) { return slots_[worker]; }
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }
  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }

  void Add(WorkerSlot slot) { slots_.push_back(std::move(slot)); }
  // Ids below `id` belong to workers of the run before it was resumed.
  void StartAt(size_t id) { slots_.resize(id); }
  // Returns whether the coordinator knew it.
  bool Lose(size_t worker);

  // Workers that are there; at least 1, as a divisor.
  double count() const;
  // Of all workers, since the run began.
  Seconds ScoreTime() const;
  Seconds BusyTime() const;
  int64_t SampledTokens() const;
  // Adds what each worker did since the last call.
  void EndStep(Seconds step, MetricList& metrics);

 private:
  void Read(size_t worker);

  std::vector<WorkerSlot> slots_;
  RolloutStats lost_;  // of workers that are gone
  WorkerMetrics metrics_;
};

}  // namespace pace

#endif  // PACE_RUNTIME_WORKER_SLOTS_H_
