// GroupTable: every live group and its state.
//
// A group is running, pooled, selected (drawn for the current step, also while it trains) or
// gone. Gone groups are removed. Ids are never reused, so a late event differs from a wrong
// one. Records are in blocks by id, and a block is freed when all its groups are gone: one old
// group does not hold the memory of those after it.
//
// Thread-safety: none; part of the coordinator.
#ifndef PACE_COORDINATOR_GROUP_TABLE_H_
#define PACE_COORDINATOR_GROUP_TABLE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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
  int64_t attempt = 1;       // 1 for the first dispatch of this prompt, 2 for the first retry
  PolicyVersion dispatched;  // the version its worker was promised
  int64_t num_finished = 0;
  int64_t num_bytes = 0;
  // While the group runs: one per member; an unfinished member has no tokens.
  std::vector<MemberSummary> members;

  bool IsFinished(int64_t member) const {
    return members[static_cast<size_t>(member)].num_tokens > 0;
  }
  void Finish(int64_t member, const MemberSummary& summary) {
    members[static_cast<size_t>(member)] = summary;
    ++num_finished;
  }
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

  GroupId next_id() const { return GroupId(next_id_); }
  int64_t num_running() const { return num_running_; }
  int64_t num_pooled() const { return num_pooled_; }
  int64_t num_selected() const { return num_selected_; }
  // The smallest version at dispatch of a group in the table.
  std::optional<PolicyVersion> OldestDispatch() const;

  // Calls visit(id, record) for every group in the table, ids ascending.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b] == nullptr) continue;
      for (size_t i = 0; i < kBlockSize; ++i) {
        const GroupRecord& record = blocks_[b]->records[i];
        if (record.state == GroupState::kGone) continue;
        visit(GroupId((first_block_ + static_cast<int64_t>(b)) * kBlockSize +
                      static_cast<int64_t>(i)),
              record);
      }
    }
  }
  // Ids of running groups, ascending.
  std::vector<GroupId> Running() const;

  // Restores one group under its own id. REQUIRES: id >= next_id().
  void Insert(GroupId id, GroupRecord record);
  // Ids below this are taken.
  void ReserveIds(GroupId next_id);

  void CheckInvariants() const;

 private:
  static constexpr int64_t kBlockSize = 64;
  struct Block {
    std::array<GroupRecord, kBlockSize> records;
    int64_t num_present = 0;
  };

  int64_t* Count(GroupState state);
  void Forget(GroupId id);

  std::deque<std::unique_ptr<Block>> blocks_;  // by id / kBlockSize - first_block_
  int64_t first_block_ = 0;
  int64_t next_id_ = 0;
  int64_t num_running_ = 0;
  int64_t num_pooled_ = 0;
  int64_t num_selected_ = 0;
  std::map<PolicyVersion, int64_t> dispatched_;  // groups per version at dispatch
};

}  // namespace pace

#endif  // PACE_COORDINATOR_GROUP_TABLE_H_
