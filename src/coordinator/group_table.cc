#include "coordinator/group_table.h"

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
  if (id.value() < base_ || id >= next_id()) return nullptr;
  const GroupRecord& record = records_[static_cast<size_t>(id.value() - base_)];
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
  ForgetGone();
}

void GroupTable::ForgetGone() {
  while (!records_.empty() && records_.front().state == GroupState::kGone) {
    records_.pop_front();
    ++base_;
  }
}

std::optional<PolicyVersion> GroupTable::OldestDispatch() const {
  if (dispatched_.empty()) return std::nullopt;
  return dispatched_.begin()->first;
}

std::vector<GroupId> GroupTable::Running() const {
  std::vector<GroupId> running;
  for (size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].state != GroupState::kRunning) continue;
    running.emplace_back(base_ + static_cast<int64_t>(i));
  }
  return running;
}

void GroupTable::Insert(GroupId id, GroupRecord record) {
  PACE_CHECK(id >= next_id(), "group ", id, " comes after ", next_id());
  PACE_CHECK(record.state != GroupState::kGone, "a gone group cannot be inserted");
  ReserveIds(id);
  ++*Count(record.state);
  ++dispatched_[record.dispatched];
  records_.push_back(std::move(record));
}

void GroupTable::ReserveIds(GroupId next) {
  if (records_.empty() && next.value() > base_) base_ = next.value();
  while (next_id() < next) records_.emplace_back();
}

void GroupTable::CheckInvariants() const {
  int64_t counts[3] = {0, 0, 0};
  for (const GroupRecord& record : records_) {
    if (record.state == GroupState::kGone) continue;
    ++counts[static_cast<size_t>(record.state)];
    int64_t num_finished = 0;
    for (const MemberSummary& member : record.members) num_finished += member.num_tokens > 0;
    PACE_CHECK(record.state != GroupState::kRunning ||
                   (num_finished == record.num_finished &&
                    record.num_finished < static_cast<int64_t>(record.members.size())),
               "a running group counts ", record.num_finished, " finished members");
  }
  PACE_CHECK(counts[0] == num_running_ && counts[1] == num_pooled_ && counts[2] == num_selected_,
             "groups ", counts[0], "/", counts[1], "/", counts[2], ", counted ", num_running_, "/",
             num_pooled_, "/", num_selected_);
  int64_t num_dispatched = 0;
  for (const auto& [version, count] : dispatched_) num_dispatched += count;
  PACE_CHECK(num_dispatched == num_running_ + num_pooled_ + num_selected_, "dispatch counts");
}

}  // namespace pace
