#include "coordinator/worker_table.h"

#include "core/check.h"

namespace pace {
namespace {

void CountDown(std::map<PolicyVersion, int64_t>& counts, PolicyVersion version) {
  const auto count = counts.find(version);
  if (--count->second == 0) counts.erase(count);
}

std::optional<PolicyVersion> Smallest(const std::map<PolicyVersion, int64_t>& counts) {
  if (counts.empty()) return std::nullopt;
  return counts.begin()->first;
}

}  // namespace

std::optional<PolicyVersion> WorkerTable::Serving(const WorkerRecord& record) {
  return record.served.has_value() ? record.served : record.in_flight;
}

void WorkerTable::Index(WorkerId worker, const WorkerRecord& record) {
  if (const auto serving = Serving(record)) ++serving_[*serving];
  if (const auto promised = record.promised()) ++promised_[*promised];
  if (record.in_flight.has_value()) ++num_syncing_;
  if (record.promised().has_value() && record.num_running < record.max_groups) {
    with_room_.emplace(record.num_running, worker);
  }
}

void WorkerTable::Unindex(WorkerId worker, const WorkerRecord& record) {
  if (const auto serving = Serving(record)) CountDown(serving_, *serving);
  if (const auto promised = record.promised()) CountDown(promised_, *promised);
  if (record.in_flight.has_value()) --num_syncing_;
  with_room_.erase({record.num_running, worker});
}

WorkerRecord& WorkerTable::Get(WorkerId worker) {
  const auto found = workers_.find(worker);
  PACE_CHECK(found != workers_.end(), "worker ", worker, " is not live");
  return found->second;
}

void WorkerTable::Join(WorkerId worker, int64_t max_groups) {
  WorkerRecord record;
  record.max_groups = max_groups;
  Insert(worker, record);
}

void WorkerTable::Insert(WorkerId worker, const WorkerRecord& record) {
  const bool inserted = workers_.emplace(worker, record).second;
  PACE_CHECK(inserted, "worker ", worker, " is live already");
  Index(worker, record);
}

void WorkerTable::Lose(WorkerId worker) {
  Unindex(worker, Get(worker));
  workers_.erase(worker);
}

void WorkerTable::SendSync(WorkerId worker, PolicyVersion version) {
  WorkerRecord& record = Get(worker);
  PACE_CHECK(!record.in_flight.has_value(), "worker ", worker, " has a sync in flight");
  PACE_CHECK(!record.served.has_value() || version > *record.served, "worker ", worker,
             " serves version ", record.served.value_or(version), " already");
  Unindex(worker, record);
  record.in_flight = version;
  Index(worker, record);
}

void WorkerTable::FinishSync(WorkerId worker) {
  WorkerRecord& record = Get(worker);
  PACE_CHECK(record.in_flight.has_value(), "worker ", worker, " has no sync in flight");
  Unindex(worker, record);
  record.served = record.in_flight;
  record.in_flight.reset();
  Index(worker, record);
}

const WorkerRecord* WorkerTable::Find(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : &found->second;
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
  WorkerRecord& record = Get(worker);
  with_room_.erase({record.num_running, worker});
  ++record.num_running;
  if (record.num_running < record.max_groups) with_room_.emplace(record.num_running, worker);
}

void WorkerTable::RemoveGroup(WorkerId worker) {
  WorkerRecord& record = Get(worker);
  with_room_.erase({record.num_running, worker});
  --record.num_running;
  with_room_.emplace(record.num_running, worker);
}

void WorkerTable::CheckInvariants() const {
  int64_t num_syncing = 0;
  size_t num_with_room = 0;
  std::map<PolicyVersion, int64_t> serving;
  std::map<PolicyVersion, int64_t> promised;
  for (const auto& [worker, record] : workers_) {
    PACE_CHECK(record.num_running >= 0 && record.num_running <= record.max_groups, "worker ",
               worker, " runs ", record.num_running, " of ", record.max_groups, " groups");
    PACE_CHECK(!record.served.has_value() || !record.in_flight.has_value() ||
                   *record.in_flight > *record.served,
               "worker ", worker, " would go back in version");
    num_syncing += record.in_flight.has_value();
    if (const auto version = Serving(record)) ++serving[*version];
    if (const auto version = record.promised()) ++promised[*version];
    const bool room = record.promised().has_value() && record.num_running < record.max_groups;
    PACE_CHECK(room == with_room_.contains({record.num_running, worker}), "worker ", worker,
               " is misplaced");
    num_with_room += room;
  }
  PACE_CHECK(num_syncing == num_syncing_, num_syncing, " syncs, counted ", num_syncing_);
  PACE_CHECK(serving == serving_ && promised == promised_, "versions served are miscounted");
  PACE_CHECK(num_with_room == with_room_.size(), "workers with room are miscounted");
}

}  // namespace pace
