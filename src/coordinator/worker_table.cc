#include "coordinator/worker_table.h"

#include "core/check.h"

namespace pace {
namespace {

using VersionCounts = std::map<PolicyVersion, int64_t>;

void CountDown(VersionCounts& counts, PolicyVersion version) {
  const auto count = counts.find(version);
  if (--count->second == 0) counts.erase(count);
}

std::optional<PolicyVersion> Smallest(const VersionCounts& counts) {
  if (counts.empty()) return std::nullopt;
  return counts.begin()->first;
}

// What OldestServed counts a worker with.
std::optional<PolicyVersion> Serving(const WorkerRecord& record) {
  return record.served.has_value() ? record.served : record.in_flight;
}

}  // namespace

WorkerRecord& WorkerTable::Live(WorkerId worker) {
  const auto found = workers_.find(worker);
  PACE_CHECK(found != workers_.end(), "worker ", worker, " is not live");
  return found->second;
}

const WorkerRecord* WorkerTable::Find(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : &found->second;
}

void WorkerTable::Count(WorkerId worker, const WorkerRecord& record) {
  if (const auto serving = Serving(record)) ++serving_[*serving];
  if (const auto promised = record.promised()) ++promised_[*promised];
  if (record.in_flight.has_value()) ++num_syncing_;
  if (HasRoom(record)) with_room_.emplace(record.num_running, worker);
}

void WorkerTable::Uncount(WorkerId worker, const WorkerRecord& record) {
  if (const auto serving = Serving(record)) CountDown(serving_, *serving);
  if (const auto promised = record.promised()) CountDown(promised_, *promised);
  if (record.in_flight.has_value()) --num_syncing_;
  if (HasRoom(record)) with_room_.erase({record.num_running, worker});
}

void WorkerTable::Join(WorkerId worker, int64_t max_groups) {
  Insert(worker, {.max_groups = max_groups});
}

void WorkerTable::Insert(WorkerId worker, const WorkerRecord& record) {
  PACE_CHECK(workers_.emplace(worker, record).second, "worker ", worker, " is live already");
  Count(worker, record);
}

void WorkerTable::Lose(WorkerId worker) {
  Uncount(worker, Live(worker));
  workers_.erase(worker);
}

void WorkerTable::SendSync(WorkerId worker, PolicyVersion version) {
  WorkerRecord& record = Live(worker);
  PACE_CHECK(!record.in_flight.has_value(), "worker ", worker, " has a sync in flight");
  PACE_CHECK(!record.served.has_value() || version > *record.served, "worker ", worker,
             " serves version ", record.served.value_or(version), " already");
  Uncount(worker, record);
  record.in_flight = version;
  Count(worker, record);
}

void WorkerTable::FinishSync(WorkerId worker) {
  WorkerRecord& record = Live(worker);
  PACE_CHECK(record.in_flight.has_value(), "worker ", worker, " has no sync in flight");
  Uncount(worker, record);
  record.served = record.in_flight;
  record.in_flight.reset();
  Count(worker, record);
}

std::optional<PolicyVersion> WorkerTable::OldestServed() const {
  return Smallest(serving_);
}

std::optional<PolicyVersion> WorkerTable::OldestPromised() const {
  return Smallest(promised_);
}

std::optional<WorkerId> WorkerTable::LeastLoaded() const {
  if (with_room_.empty()) return std::nullopt;
  return with_room_.begin()->second;
}

void WorkerTable::AddGroup(WorkerId worker) {
  WorkerRecord& record = Live(worker);
  PACE_CHECK(HasRoom(record), "worker ", worker, " has no room");
  with_room_.erase({record.num_running, worker});
  ++record.num_running;
  if (HasRoom(record)) with_room_.emplace(record.num_running, worker);
}

void WorkerTable::RemoveGroup(WorkerId worker) {
  WorkerRecord& record = Live(worker);
  if (HasRoom(record)) with_room_.erase({record.num_running, worker});
  --record.num_running;
  with_room_.emplace(record.num_running, worker);
}

void WorkerTable::CheckInvariants() const {
  WorkerTable counted;
  for (const auto& [worker, record] : workers_) {
    PACE_CHECK(record.num_running >= 0 && record.num_running <= record.max_groups, "worker ",
               worker, " runs ", record.num_running, " of ", record.max_groups, " groups");
    PACE_CHECK(!record.served.has_value() || !record.in_flight.has_value() ||
                   *record.in_flight > *record.served,
               "worker ", worker, " would go back in version");
    counted.Count(worker, record);
  }
  PACE_CHECK(counted.num_syncing_ == num_syncing_, counted.num_syncing_, " syncs, counted ",
             num_syncing_);
  PACE_CHECK(counted.serving_ == serving_ && counted.promised_ == promised_,
             "versions served are miscounted");
  PACE_CHECK(counted.with_room_ == with_room_, "workers with room are miscounted");
}

}  // namespace pace
