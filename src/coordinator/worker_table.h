// WorkerTable: live workers, the weights they serve and the room they have.
//
// A worker is promised a version when a sync is sent to it, and serves the version when the
// sync is done. It carries out commands in order, so a group sent after the sync samples from
// the promised version or a later one.
//
// Thread-safety: none; part of the coordinator.
#ifndef PACE_COORDINATOR_WORKER_TABLE_H_
#define PACE_COORDINATOR_WORKER_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/ids.h"
#include "core/version.h"

namespace pace {

struct WorkerRecord {
  int64_t max_groups = 1;
  int64_t num_running = 0;
  std::optional<PolicyVersion> served{};     // none before the first sync is done
  std::optional<PolicyVersion> in_flight{};  // the version of the sync in flight
  // The version that a group sent now samples from first.
  std::optional<PolicyVersion> promised() const {
    return in_flight.has_value() ? in_flight : served;
  }
};

class WorkerTable {
 public:
  void Join(WorkerId worker, int64_t max_groups);
  void Lose(WorkerId worker);
  // REQUIRES: live, no sync in flight, version above what it serves.
  void SendSync(WorkerId worker, PolicyVersion version);
  // REQUIRES: live, a sync in flight.
  void FinishSync(WorkerId worker);

  // Null for a worker that is not live.
  const WorkerRecord* Find(WorkerId worker) const;
  const std::map<WorkerId, WorkerRecord>& workers() const { return workers_; }
  int64_t num_live() const { return static_cast<int64_t>(workers_.size()); }
  int64_t num_syncing() const { return num_syncing_; }

  // The oldest version a live worker serves; before its first sync is done a worker counts
  // with the version it is promised. None while no worker was promised any.
  std::optional<PolicyVersion> OldestServed() const;
  // The oldest version that a group sent now could sample from.
  std::optional<PolicyVersion> OldestPromised() const;

  // The worker with the fewest running groups among those that have room and were promised a
  // version; of equals, the one with the smaller id.
  std::optional<WorkerId> LeastLoaded() const;
  void AddGroup(WorkerId worker);
  void RemoveGroup(WorkerId worker);

  // Adds a worker in a given state.
  void Insert(WorkerId worker, const WorkerRecord& record);
  void CheckInvariants() const;

 private:
  WorkerRecord& Live(WorkerId worker);
  static bool HasRoom(const WorkerRecord& record) {
    return record.promised().has_value() && record.num_running < record.max_groups;
  }
  // A record is taken out of the counts below before it changes, and entered again after.
  void Count(WorkerId worker, const WorkerRecord& record);
  void Uncount(WorkerId worker, const WorkerRecord& record);

  std::map<WorkerId, WorkerRecord> workers_;
  std::map<PolicyVersion, int64_t> serving_;          // workers per version served
  std::map<PolicyVersion, int64_t> promised_;         // and per version promised
  std::set<std::pair<int64_t, WorkerId>> with_room_;  // running groups, worker
  int64_t num_syncing_ = 0;
};

}  // namespace pace

#endif  // PACE_COORDINATOR_WORKER_TABLE_H_
