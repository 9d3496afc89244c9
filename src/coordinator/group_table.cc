#include "coordinator/group_table.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {

GroupId GroupTable::Start(WorkerId worker, PromptIndex prompt, int64_t attempt,
                          PolicyVersion dispatched, int64_t group_size) {
  const GroupId id = next_id();
  GroupRecord record;
  record.state = GroupState::kRunning;
  record.worker = worker;
  record.prompt = prompt;
  record.attempt = attempt;
  record.dispatched = dispatched;
  record.members.resize(static_cast<size_t>(group_size));
  Insert(id, std::move(record));
  return id;
}

GroupRecord* GroupTable::Find(GroupId id) {
  return const_cast<GroupRecord*>(std::as_const(*this).Find(id));
}

const GroupRecord* GroupTable::Find(GroupId id) const {
  const int64_t block = id.value() / kBlockSize - first_block_;
  if (id.value() < 0 || block < 0 || block >= static_cast<int64_t>(blocks_.size())) return nullptr;
  const Block* found = blocks_[static_cast<size_t>(block)].get();
  if (found == nullptr) return nullptr;
  const GroupRecord& record = found->records[static_cast<size_t>(id.value() % kBlockSize)];
  return record.state == GroupState::kGone ? nullptr : &record;
}

int64_t* GroupTable::Count(GroupState state) {
  switch (state) {
    case GroupState::kRunning:
      return &num_running_;
    case GroupState::kPooled:
      return &num_pooled_;
    case GroupState::kSelected:
      return &num_selected_;
    case GroupState::kGone:
      break;
  }
  return nullptr;
}

void GroupTable::Move(GroupId id, GroupState state) {
  GroupRecord* record = Find(id);
  PACE_CHECK(record != nullptr, "group ", id, " is not in the table");
  PACE_CHECK(record->state != state, "group ", id, " is in that state already");
  --*Count(record->state);
  record->state = state;
  if (state != GroupState::kRunning) record->members = {};
  if (state != GroupState::kGone) {
    ++*Count(state);
    return;
  }
  const auto dispatched = dispatched_.find(record->dispatched);
  if (--dispatched->second == 0) dispatched_.erase(dispatched);
  Forget(id);
}

void GroupTable::Forget(GroupId id) {
  std::unique_ptr<Block>& block =
      blocks_[static_cast<size_t>(id.value() / kBlockSize - first_block_)];
  --block->num_present;
  const bool is_last = id.value() / kBlockSize == (next_id_ - 1) / kBlockSize;
  // The block of the next id stays.
  if (block->num_present == 0 && (!is_last || next_id_ % kBlockSize == 0)) block.reset();
  while (!blocks_.empty() && blocks_.front() == nullptr) {
    blocks_.pop_front();
    ++first_block_;
  }
}

std::optional<PolicyVersion> GroupTable::OldestDispatch() const {
  if (dispatched_.empty()) return std::nullopt;
  return dispatched_.begin()->first;
}

std::vector<GroupId> GroupTable::Running() const {
  std::vector<GroupId> running;
  ForEach([&running](GroupId id, const GroupRecord& record) {
    if (record.state == GroupState::kRunning) running.push_back(id);
  });
  return running;
}

void GroupTable::Insert(GroupId id, GroupRecord record) {
  PACE_CHECK(id >= next_id(), "group ", id, " comes after ", next_id());
  PACE_CHECK(record.state != GroupState::kGone, "a gone group cannot be inserted");
  ReserveIds(id);
  ++*Count(record.state);
  ++dispatched_[record.dispatched];
  const int64_t block = id.value() / kBlockSize;
  if (blocks_.empty()) first_block_ = block;
  while (first_block_ + static_cast<int64_t>(blocks_.size()) <= block) blocks_.emplace_back();
  std::unique_ptr<Block>& place = blocks_[static_cast<size_t>(block - first_block_)];
  if (place == nullptr) place = std::make_unique<Block>();
  ++place->num_present;
  place->records[static_cast<size_t>(id.value() % kBlockSize)] = std::move(record);
  next_id_ = id.value() + 1;
}

void GroupTable::ReserveIds(GroupId next) {
  next_id_ = std::max(next_id_, next.value());
}

void GroupTable::CheckInvariants() const {
  int64_t counts[3] = {0, 0, 0};
  ForEach([&counts](GroupId id, const GroupRecord& record) {
    ++counts[static_cast<size_t>(record.state)];
    if (record.state != GroupState::kRunning) return;
    int64_t num_finished = 0;
    for (const MemberSummary& member : record.members) num_finished += member.num_tokens > 0;
    PACE_CHECK(num_finished == record.num_finished &&
                   num_finished < static_cast<int64_t>(record.members.size()),
               "running group ", id, " counts ", record.num_finished, " finished members");
  });
  PACE_CHECK(counts[0] == num_running_ && counts[1] == num_pooled_ && counts[2] == num_selected_,
             "groups ", counts[0], "/", counts[1], "/", counts[2], ", counted ", num_running_, "/",
             num_pooled_, "/", num_selected_);
  int64_t num_dispatched = 0;
  for (const auto& [version, count] : dispatched_) num_dispatched += count;
  int64_t num_present = 0;
  for (const auto& block : blocks_) num_present += block == nullptr ? 0 : block->num_present;
  const int64_t num_groups = num_running_ + num_pooled_ + num_selected_;
  PACE_CHECK(num_dispatched == num_groups && num_present == num_groups, "groups ", num_groups,
             ", dispatched ", num_dispatched, ", present ", num_present);
}

}  // namespace pace
