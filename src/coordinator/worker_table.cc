#include "coordinator/worker_table.h"

#include <algorithm>

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

size_t WorkerTable::Place(WorkerId worker) const {
  // Ids mostly follow each other, so the first guess mostly holds.
  if (!workers_.empty() && worker >= workers_.front().first) {
    const auto guess = static_cast<size_t>(worker.value() - workers_.front().first.value());
    if (guess < workers_.size() && workers_[guess].first == worker) return guess;
  }
  const auto found = std::lower_bound(
      workers_.begin(), workers_.end(), worker,
      [](const std::pair<WorkerId, WorkerRecord>& entry, WorkerId id) { return entry.first < id; });
  return static_cast<size_t>(found - workers_.begin());
}

size_t WorkerTable::PlaceOfLive(WorkerId worker) const {
  const size_t place = Place(worker);
  PACE_CHECK(place < workers_.size() && workers_[place].first == worker, "worker ", worker,
             " is not live");
  return place;
}

const WorkerRecord* WorkerTable::Find(WorkerId worker) const {
  const size_t place = Place(worker);
  if (place >= workers_.size() || workers_[place].first != worker) return nullptr;
  return &workers_[place].second;
}

void WorkerTable::Index(size_t place) {
  const WorkerRecord& record = workers_[place].second;
  if (const auto serving = Serving(record)) ++serving_[*serving];
  if (const auto promised = record.promised()) ++promised_[*promised];
  if (record.in_flight.has_value()) ++num_syncing_;
  if (HasRoom(record)) with_room_.Insert(place, record.num_running);
}

void WorkerTable::Unindex(size_t place) {
  const WorkerRecord& record = workers_[place].second;
  if (const auto serving = Serving(record)) CountDown(serving_, *serving);
  if (const auto promised = record.promised()) CountDown(promised_, *promised);
  if (record.in_flight.has_value()) --num_syncing_;
  if (HasRoom(record)) with_room_.Erase(place, record.num_running);
}

void WorkerTable::RebuildRoom() {
  with_room_.Clear();
  for (size_t place = 0; place < workers_.size(); ++place) {
    const WorkerRecord& record = workers_[place].second;
    if (HasRoom(record)) with_room_.Insert(place, record.num_running);
  }
}

void WorkerTable::Join(WorkerId worker, int64_t max_groups) {
  WorkerRecord record;
  record.max_groups = max_groups;
  Insert(worker, record);
}

void WorkerTable::Insert(WorkerId worker, const WorkerRecord& record) {
  const size_t place = Place(worker);
  const bool is_last = place == workers_.size();
  PACE_CHECK(is_last || workers_[place].first != worker, "worker ", worker, " is live already");
  workers_.insert(workers_.begin() + static_cast<std::ptrdiff_t>(place), {worker, record});
  Index(place);
  if (!is_last) RebuildRoom();
}

void WorkerTable::Lose(WorkerId worker) {
  const size_t place = PlaceOfLive(worker);
  Unindex(place);
  workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(place));
  RebuildRoom();
}

void WorkerTable::SendSync(WorkerId worker, PolicyVersion version) {
  const size_t place = PlaceOfLive(worker);
  WorkerRecord& record = workers_[place].second;
  PACE_CHECK(!record.in_flight.has_value(), "worker ", worker, " has a sync in flight");
  PACE_CHECK(!record.served.has_value() || version > *record.served, "worker ", worker,
             " serves version ", record.served.value_or(version), " already");
  Unindex(place);
  record.in_flight = version;
  Index(place);
}

void WorkerTable::FinishSync(WorkerId worker) {
  const size_t place = PlaceOfLive(worker);
  WorkerRecord& record = workers_[place].second;
  PACE_CHECK(record.in_flight.has_value(), "worker ", worker, " has no sync in flight");
  Unindex(place);
  record.served = record.in_flight;
  record.in_flight.reset();
  Index(place);
}

std::optional<PolicyVersion> WorkerTable::OldestServed() const {
  return Smallest(serving_);
}

std::optional<PolicyVersion> WorkerTable::OldestPromised() const {
  return Smallest(promised_);
}

std::optional<WorkerId> WorkerTable::LeastLoaded() {
  const auto place = with_room_.First();
  if (!place.has_value()) return std::nullopt;
  return workers_[*place].first;
}

void WorkerTable::AddGroup(WorkerId worker) {
  const size_t place = PlaceOfLive(worker);
  WorkerRecord& record = workers_[place].second;
  PACE_CHECK(HasRoom(record), "worker ", worker, " has no room");
  with_room_.Erase(place, record.num_running);
  ++record.num_running;
  if (HasRoom(record)) with_room_.Insert(place, record.num_running);
}

void WorkerTable::RemoveGroup(WorkerId worker) {
  const size_t place = PlaceOfLive(worker);
  WorkerRecord& record = workers_[place].second;
  if (HasRoom(record)) with_room_.Erase(place, record.num_running);
  --record.num_running;
  with_room_.Insert(place, record.num_running);
}

void WorkerTable::CheckInvariants() const {
  int64_t num_syncing = 0;
  size_t num_with_room = 0;
  std::map<PolicyVersion, int64_t> serving;
  std::map<PolicyVersion, int64_t> promised;
  for (size_t place = 0; place < workers_.size(); ++place) {
    const auto& [worker, record] = workers_[place];
    PACE_CHECK(place == 0 || workers_[place - 1].first < worker, "workers are out of order");
    PACE_CHECK(record.num_running >= 0 && record.num_running <= record.max_groups, "worker ",
               worker, " runs ", record.num_running, " of ", record.max_groups, " groups");
    PACE_CHECK(!record.served.has_value() || !record.in_flight.has_value() ||
                   *record.in_flight > *record.served,
               "worker ", worker, " would go back in version");
    num_syncing += record.in_flight.has_value();
    if (const auto version = Serving(record)) ++serving[*version];
    if (const auto version = record.promised()) ++promised[*version];
    PACE_CHECK(HasRoom(record) == with_room_.Contains(place, record.num_running), "worker ", worker,
               " is misplaced");
    num_with_room += HasRoom(record);
  }
  PACE_CHECK(num_syncing == num_syncing_, num_syncing, " syncs, counted ", num_syncing_);
  PACE_CHECK(serving == serving_ && promised == promised_, "versions served are miscounted");
  PACE_CHECK(num_with_room == with_room_.size(), "workers with room are miscounted");
}

}  // namespace pace
