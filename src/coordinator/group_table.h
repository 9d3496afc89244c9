// GroupTable: every group that has not come to an end, and what state it is in.
//
// A group is running, pooled, selected (drawn for the current step, also while
// it trains) or gone; gone groups are forgotten, but ids are never used again,
// so a late event can be told from a wrong one.
//
// Thread-safety: none; part of the coordinator.
#ifndef PACE_COORDINATOR_GROUP_TABLE_H_
#define PACE_COORDINATOR_GROUP_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/staleness.h"
#include "core/version.h"

namespace pace {

enum class GroupState { kRunning, kPooled, kSelected, kGone };

struct GroupRecord {
  GroupState state = GroupState::kGone;
  WorkerId worker;
  PromptIndex prompt;
  int64_t attempt = 1;       // the how-manieth dispatch of this prompt
  PolicyVersion dispatched;  // the version its worker was promised
  int64_t num_finished = 0;
  int64_t num_bytes = 0;
  // While running: one per member; a member without tokens has not finished.
  std::vector<MemberSummary> members;
};

class GroupTable {
 public:
  // Adds a running group under the next id.
  GroupId Start(WorkerId worker, PromptIndex prompt, int64_t attempt, PolicyVersion dispatched,
                int64_t group_size);

  // Null for a group that is gone or was never started.
  GroupRecord* Find(GroupId id);
  const GroupRecord* Find(GroupId id) const;

  // REQUIRES: the group is in the table and not in `state` yet.
  void Move(GroupId id, GroupState state);

  GroupId next_id() const { return GroupId(base_ + static_cast<int64_t>(records_.size())); }
  int64_t num_running() const { return num_running_; }
  int64_t num_pooled() const { return num_pooled_; }
  int64_t num_selected() const { return num_selected_; }
  // The smallest version at dispatch of a group in the table.
  std::optional<PolicyVersion> OldestDispatch() const;

  // Ids of running groups, ascending.
  std::vector<GroupId> Running() const;

  // Calls visit(id, record) for every group in the table, ids ascending.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < records_.size(); ++i) {
      if (records_[i].state == GroupState::kGone) continue;
      visit(GroupId(base_ + static_cast<int64_t>(i)), records_[i]);
    }
  }

  // Restores one group under its own id. REQUIRES: id >= next_id().
  void Insert(GroupId id, GroupRecord record);
  // Ids below this are used up.
  void ReserveIds(GroupId next_id);

  void CheckInvariants() const;

 private:
  int64_t* Count(GroupState state);
  void ForgetGone();

  std::deque<GroupRecord> records_;  // by id - base_
  int64_t base_ = 0;
  int64_t num_running_ = 0;
  int64_t num_pooled_ = 0;
  int64_t num_selected_ = 0;
  std::map<PolicyVersion, int64_t> dispatched_;  // groups per version at dispatch
};

}  // namespace pace

#endif  // PACE_COORDINATOR_GROUP_TABLE_H_
