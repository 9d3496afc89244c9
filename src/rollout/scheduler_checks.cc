// What must hold of a Scheduler between any two calls, counted from scratch.
#include <cstddef>
#include <vector>

#include "core/check.h"
#include "rollout/scheduler_state.h"

namespace pace {

struct Scheduler::State::Audit {
  explicit Audit(const State& state)
      : s(state),
        num_owners(static_cast<size_t>(s.pool.num_blocks()), 0),
        num_members(s.groups.size(), 0),
        num_running(s.groups.size(), 0) {}

  void Count(const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) ++num_owners.at(static_cast<size_t>(block));
  }

  void CheckMember(MemberSlot slot) {
    const Member& member = s.At(slot);
    PACE_CHECK(s.GroupOf(member).in_use, "member ", slot, " has no group");
    ++num_members[static_cast<size_t>(member.group)];
    if (member.running) return CheckRunning(slot, member);
    PACE_CHECK(member.blocks.empty() && member.num_cached == 0 && !member.joined, "member ", slot,
               " waits with blocks");
    if (member.resting) {
      ++num_resting;
      PACE_CHECK(member.begun, "member ", slot, " rests before it began");
      return;
    }
    ++num_waiting;
    const auto& line = member.begun ? s.waiting_begun : s.waiting_new;
    const auto place = line.find(member.order);
    PACE_CHECK(place != line.end() && place->second == slot, "member ", slot, " is not in line");
  }

  void CheckRunning(MemberSlot slot, const Member& member) {
    const Group& group = s.GroupOf(member);
    ++num_running[static_cast<size_t>(member.group)];
    if (member.may_grow()) ++num_growing;
    PACE_CHECK(member.begun && member.num_missing() >= 1, "member ", slot, " has nothing to run");
    PACE_CHECK(!member.joined || group.complete(), "member ", slot, " joined half a prefix");
    // The block of the newest token comes with the plan that runs it.
    const auto num_blocks = static_cast<int64_t>(member.blocks.size());
    PACE_CHECK(num_blocks >= BlocksOf(member.num_tokens - 1) && num_blocks <= member.max_blocks,
               "member ", slot, " has ", num_blocks, " blocks for ", member.num_tokens, " tokens");
    for (size_t i = 0; i < member.blocks.size(); ++i) {
      const BlockId block = member.blocks[i];
      if (i < static_cast<size_t>(group.num_whole_blocks())) {
        PACE_CHECK(block == group.blocks.at(i), "member ", slot, " left its prefix");
      } else {
        PACE_CHECK(s.pool.num_owners(block) == 1, "member ", slot, " shares block ", block);
      }
    }
    Count(member.blocks);
  }

  void CheckGroup(size_t index) {
    const Group& group = s.groups[index];
    PACE_CHECK(num_members[index] > 0 && group.num_unfinished == num_members[index] &&
                   group.num_running == num_running[index],
               "group ", index, " miscounts its members");
    PACE_CHECK(!group.in_plan, "group ", index, " is in no plan");
    if (group.resident()) {
      PACE_CHECK(static_cast<int64_t>(group.blocks.size()) == BlocksOf(group.num_prefix_tokens),
                 "prefix ", index, " has ", group.blocks.size(), " blocks");
      if (group.num_running == 0) ++num_idle;
    } else {
      PACE_CHECK(group.num_cached == 0, "prefix ", index, " is cached nowhere");
      PACE_CHECK(group.num_running == 0 || group.num_prefix_tokens == 0, "prefix ", index,
                 " is missing");
    }
    Count(group.blocks);
  }

  void CheckTotals() const {
    PACE_CHECK(num_idle == s.idle.size(), num_idle, " prefixes are idle, not ", s.idle.size());
    PACE_CHECK(num_growing == s.num_growing, num_growing, " members grow, not ", s.num_growing);
    PACE_CHECK(num_resting == s.num_resting, num_resting, " rest, not ", s.num_resting);
    PACE_CHECK(num_waiting == s.waiting_begun.size() + s.waiting_new.size(), num_waiting, " wait");
    PACE_CHECK(static_cast<int64_t>(s.running.size()) <= s.max_running, s.running.size(), " run");
    for (size_t i = 0; i < s.running.size(); ++i) {
      PACE_CHECK(s.At(s.running[i]).running, "member ", s.running[i], " does not run");
      PACE_CHECK(i == 0 || s.At(s.running[i - 1]).order < s.At(s.running[i]).order,
                 "running members out of order");
    }
    int64_t num_free = 0;
    for (size_t i = 0; i < num_owners.size(); ++i) {
      const int32_t known = s.pool.num_owners(static_cast<BlockId>(i));
      PACE_CHECK(known == num_owners[i], "block ", i, " has ", num_owners[i], " owners, not ",
                 known);
      if (known == 0) ++num_free;
    }
    PACE_CHECK(num_free == s.pool.num_free(), num_free, " are free, not ", s.pool.num_free());
  }

  const State& s;
  std::vector<int32_t> num_owners;   // by block
  std::vector<int64_t> num_members;  // by group
  std::vector<int64_t> num_running;  // by group
  size_t num_waiting = 0;
  size_t num_idle = 0;
  int64_t num_resting = 0;
  int64_t num_growing = 0;
};

void Scheduler::CheckInvariants() const {
  const State& s = *state_;
  State::Audit audit(s);
  for (size_t i = 0; i < s.members.size(); ++i) {
    if (s.members[i].in_use) audit.CheckMember(static_cast<MemberSlot>(i));
  }
  for (size_t i = 0; i < s.groups.size(); ++i) {
    if (s.groups[i].in_use) audit.CheckGroup(i);
  }
  audit.CheckTotals();
}

}  // namespace pace
