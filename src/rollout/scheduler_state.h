// The state of a Scheduler and the steps of its methods. Private to scheduler.cc.
#ifndef PACE_ROLLOUT_SCHEDULER_STATE_H_
#define PACE_ROLLOUT_SCHEDULER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "rollout/block_pool.h"
#include "rollout/scheduler.h"

namespace pace {

struct Scheduler::State {
  using GroupIndex = int32_t;

  // The shared prompt. It holds blocks ("resident") from the start of a member until no member
  // is left, or until they are needed elsewhere while no member runs.
  struct Group {
    bool in_use = false;
    int64_t arrival = 0;
    int64_t num_unfinished = 0;
    int64_t num_running = 0;
    int64_t num_shared_tokens = 0;  // 0: nothing is shared
    int64_t num_cached = 0;
    int64_t num_lost = 0;  // tokens lost by an invalidation
    bool in_plan = false;  // a chunk of the shared prompt is in the plan
    std::vector<BlockId> blocks;

    bool resident() const { return !blocks.empty(); }
    bool complete() const { return num_cached == num_shared_tokens; }
    int64_t num_whole_blocks() const { return num_shared_tokens / kBlockTokens; }
    bool has_partial_block() const { return num_shared_tokens % kBlockTokens != 0; }
  };

  struct Member {
    bool in_use = false;
    bool started = false;
    bool running = false;
    bool paused = false;
    bool joined = false;  // uses the complete shared prompt, if there is one
    GroupIndex group = 0;
    int64_t order = 0;       // of arrival, over all members
    int64_t num_tokens = 0;  // prompt and generated
    int64_t num_cached = 0;
    int64_t num_lost = 0;    // tokens lost by an invalidation
    int64_t max_blocks = 0;  // at its longest
    std::vector<BlockId> blocks;

    int64_t num_missing() const { return num_tokens - num_cached; }
    bool decodes() const { return joined && num_missing() == 1; }
    bool may_grow() const { return static_cast<int64_t>(blocks.size()) < max_blocks; }
  };

  struct Audit;

  explicit State(const SchedulerOptions& options);

  Member& At(MemberSlot slot) { return members[static_cast<size_t>(slot)]; }
  const Member& At(MemberSlot slot) const { return members[static_cast<size_t>(slot)]; }
  Group& GroupOf(const Member& member) { return groups[static_cast<size_t>(member.group)]; }
  const Group& GroupOf(const Member& member) const {
    return groups[static_cast<size_t>(member.group)];
  }

  GroupIndex NewGroup();
  MemberSlot NewMember();
  void PutInLine(MemberSlot slot);
  void Start(MemberSlot slot);
  // Releases all blocks of a member; the caller removes it from `running`.
  void GiveBack(Member& member);
  void ReleaseSharedPrompt(Group& group);
  // Removes a member that holds no blocks.
  void Forget(MemberSlot slot);

  // Frees idle shared prompts (except that of `excluded`), youngest first, until num_blocks
  // blocks are free; false, and nothing freed, if they do not suffice.
  bool MakeRoom(int64_t num_blocks, const Group* excluded);
  void PreemptYoungest();
  // Takes a block for the token that a decoding member runs next. False: the member was itself
  // the youngest and was preempted.
  bool Grow(MemberSlot slot);
  void GrowSpeculatively(Member& member);
  bool AdmitNext(MemberSlot& slot);

  void PlanDecoding();
  void PlanCatchingUp();
  void PlanPartOf(MemberSlot slot);
  void PlanMemberChunk(MemberSlot slot, int64_t num_tokens);
  void PlanSharedChunk(MemberSlot slot, int64_t num_tokens);
  int64_t CommitChunk(const PlannedChunk& chunk, std::span<const RowEnd> ends, int64_t num_ended);

  const int64_t max_pass_tokens;
  const int64_t max_running;
  const bool speculative_room;
  BlockPool pool;

  std::vector<Group> groups;
  std::vector<Member> members;
  std::vector<GroupIndex> free_groups;
  std::vector<MemberSlot> free_members;
  int64_t next_order = 0;

  std::vector<MemberSlot> running;  // by order
  // Waiting members, by order.
  std::map<int64_t, MemberSlot> waiting_started;
  std::map<int64_t, MemberSlot> waiting_new;
  int64_t num_paused = 0;
  bool hold_new = false;
  int64_t num_growing = 0;       // running members that may need another block
  std::vector<GroupIndex> idle;  // resident shared prompts without a running member

  PassPlan plan;
  bool planned = false;  // `plan` waits for Commit
  int64_t num_rows_left = 0;
  std::vector<MemberSlot> catching_up;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_SCHEDULER_STATE_H_
