// WorkerTable: live workers, the weights they serve and the room they have.
//
// A worker is promised a version when a sync to it is sent, and serves it when
// the sync is done. Because its commands are carried out in order, a group sent
// after the sync samples from the promised version or a later one.
//
// Thread-safety: none; part of the coordinator.
#ifndef PACE_COORDINATOR_WORKER_TABLE_H_
#define PACE_COORDINATOR_WORKER_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/load_index.h"
#include "core/ids.h"
#include "core/version.h"

namespace pace {

struct WorkerRecord {
  int64_t max_groups = 1;
  int64_t num_running = 0;
  std::optional<PolicyVersion> served;     // none before the first sync is done
  std::optional<PolicyVersion> in_flight;  // the sync on its way
  // What a group sent now will sample from first.
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
  // By id, ascending.
  const std::vector<std::pair<WorkerId, WorkerRecord>>& workers() const { return workers_; }
  int64_t num_live() const { return static_cast<int64_t>(workers_.size()); }
  int64_t num_syncing() const { return num_syncing_; }

  // The oldest version a live worker serves; a worker whose first sync is on
  // its way serves nothing older than what it is promised. None while no worker
  // was promised anything.
  std::optional<PolicyVersion> OldestServed() const;
  // The oldest version that a group sent now could sample from.
  std::optional<PolicyVersion> OldestPromised() const;

  // The worker with the fewest running groups that has room and was promised a
  // version; the smaller id where they are equal.
  std::optional<WorkerId> LeastLoaded();
  void AddGroup(WorkerId worker);
  void RemoveGroup(WorkerId worker);

  // Restores one worker as it was.
  void Insert(WorkerId worker, const WorkerRecord& record);
  void CheckInvariants() const;

 private:
  // The place of a live worker in workers_, or where it would stand.
  size_t Place(WorkerId worker) const;
  size_t PlaceOfLive(WorkerId worker) const;
  static std::optional<PolicyVersion> Serving(const WorkerRecord& record);
  static bool HasRoom(const WorkerRecord& record) {
    return record.promised().has_value() && record.num_running < record.max_groups;
  }
  void Index(size_t place);
  void Unindex(size_t place);
  // Workers come and go rarely; their places behind them shift.
  void RebuildRoom();

  std::vector<std::pair<WorkerId, WorkerRecord>> workers_;
  std::map<PolicyVersion, int64_t> serving_;   // workers per version served
  std::map<PolicyVersion, int64_t> promised_;  // and per version promised
  LoadIndex with_room_;                        // places, by running groups
  int64_t num_syncing_ = 0;
};

}  // namespace pace

#endif  // PACE_COORDINATOR_WORKER_TABLE_H_
