#include "rollout/scheduler.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "rollout/scheduler_state.h"

namespace pace {

Status SchedulerOptions::Validate() const {
  if (num_blocks < 1 || num_blocks > std::numeric_limits<BlockId>::max()) {
    return InvalidArgument("num_blocks = ", num_blocks, ": must be between 1 and 2^31 - 1");
  }
  if (max_pass_tokens < 1) {
    return InvalidArgument("max_pass_tokens = ", max_pass_tokens, ": must be >= 1");
  }
  if (max_running < 0) {
    return InvalidArgument("max_running = ", max_running, ": must be >= 0 (0 = as memory allows)");
  }
  return Status::Ok();
}

Scheduler::Scheduler(const SchedulerOptions& options) {
  const Status status = options.Validate();
  PACE_CHECK(status.ok(), status.message());
  state_ = std::make_unique<State>(options);
}

Scheduler::~Scheduler() = default;

Result<std::vector<MemberSlot>> Scheduler::Add(int64_t num_prompt_tokens, int64_t max_generated,
                                               std::span<const int64_t> num_generated) {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  PACE_CHECK(num_prompt_tokens >= 1 && !num_generated.empty(), "an empty group");
  const bool shares = num_generated.size() > 1;
  const int64_t num_shared_tokens = shares ? num_prompt_tokens - 1 : 0;
  // The last token is sampled, never run. A partial block of the shared prompt exists
  // beside the member's own copy of it.
  const int64_t max_blocks = BlocksOf(num_prompt_tokens + max_generated - 1);
  const int64_t num_needed = max_blocks + (num_shared_tokens % kBlockTokens != 0 ? 1 : 0);
  if (num_needed > s.pool.num_blocks()) {
    return InvalidArgument("prompt of ", num_prompt_tokens, " and max_tokens of ", max_generated,
                           " need ", num_needed, " KV blocks of ", kBlockTokens,
                           " tokens: the cache has ", s.pool.num_blocks(),
                           " (lower max_tokens or give the cache more memory)");
  }

  const State::GroupIndex index = s.NewGroup();
  State::Group& group = s.groups[static_cast<size_t>(index)];
  group.arrival = s.next_order;
  group.num_shared_tokens = num_shared_tokens;
  std::vector<MemberSlot> slots;
  slots.reserve(num_generated.size());
  for (const int64_t generated : num_generated) {
    PACE_CHECK(generated >= 0 && generated < max_generated, generated, " of ", max_generated);
    const MemberSlot slot = s.NewMember();
    State::Member& member = s.At(slot);
    member.group = index;
    member.order = s.next_order++;
    member.num_tokens = num_prompt_tokens + generated;
    member.max_blocks = max_blocks;
    member.started = generated > 0 && !s.hold_new;
    ++group.num_unfinished;
    s.PutInLine(slot);
    slots.push_back(slot);
  }
  return slots;
}

const PassPlan& Scheduler::Next() {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  s.plan.copies.clear();
  s.plan.chunks.clear();
  s.plan.preempted.clear();
  s.catching_up.clear();
  s.num_rows_left = s.max_pass_tokens;
  s.PlanDecoding();
  // From here on no block is given back, so every copy finds its source as it
  // was and its target untouched.
  s.PlanCatchingUp();
  s.planned = !s.plan.empty();
  PACE_CHECK(s.planned || s.running.empty(), "members run, but none has a row");
  return s.plan;
}

void Scheduler::Commit(std::span<const RowEnd> ends) {
  State& s = *state_;
  PACE_CHECK(s.planned, "nothing is planned");
  s.planned = false;
  int64_t num_ended = 0;
  for (const PlannedChunk& chunk : s.plan.chunks) num_ended = s.CommitChunk(chunk, ends, num_ended);
  PACE_CHECK(num_ended == static_cast<int64_t>(ends.size()), ends.size(), " results for ",
             num_ended, " sampled rows");
  const bool all_grow =
      std::all_of(ends.begin(), ends.end(), [](RowEnd end) { return end == RowEnd::kGrows; });
  if (all_grow) return;
  std::erase_if(s.running, [&s](MemberSlot slot) {
    if (s.At(slot).running) return false;
    if (!s.At(slot).paused) s.Forget(slot);
    return true;
  });
}

void Scheduler::Pause(MemberSlot slot) {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  State::Member& member = s.At(slot);
  PACE_CHECK(member.in_use && !member.running && !member.paused, "member ", slot, " cannot pause");
  (member.started ? s.waiting_started : s.waiting_new).erase(member.order);
  member.started = true;
  member.paused = true;
  ++s.num_paused;
}

void Scheduler::Resume(MemberSlot slot, int64_t num_more_tokens) {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  State::Member& member = s.At(slot);
  PACE_CHECK(member.in_use && member.paused && num_more_tokens >= 0, "member ", slot,
             " is not paused");
  member.num_tokens += num_more_tokens;
  PACE_CHECK(BlocksOf(member.num_tokens) <= member.max_blocks, "member ", slot, " is too long");
  member.paused = false;
  --s.num_paused;
  s.PutInLine(slot);
}

void Scheduler::Abandon() {
  PACE_CHECK(state_->planned, "nothing is planned");
  state_->planned = false;
  for (const PlannedChunk& chunk : state_->plan.chunks) {
    state_->GroupOf(state_->At(chunk.slot)).in_plan = false;
  }
  InvalidateCache();
}

void Scheduler::Cancel(MemberSlot slot) {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  State::Member& member = s.At(slot);
  PACE_CHECK(member.in_use, "no member ", slot);
  if (member.running) {
    s.GiveBack(member);
    std::erase(s.running, slot);
  } else if (member.paused) {
    --s.num_paused;
  } else {
    (member.started ? s.waiting_started : s.waiting_new).erase(member.order);
  }
  s.Forget(slot);
}

void Scheduler::InvalidateCache() {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  for (const MemberSlot slot : s.running) {
    State::Member& member = s.At(slot);
    member.num_lost = std::max(member.num_lost, member.num_cached);
    s.GiveBack(member);
    s.PutInLine(slot);
  }
  s.running.clear();
  for (const State::GroupIndex index : s.idle) {
    State::Group& group = s.groups[static_cast<size_t>(index)];
    group.num_lost = std::max(group.num_lost, group.num_cached);
    s.ReleaseSharedPrompt(group);
  }
  s.idle.clear();
}

void Scheduler::set_hold_new(bool hold) {
  state_->hold_new = hold;
}

int64_t Scheduler::num_unfinished() const {
  return num_started() + static_cast<int64_t>(state_->waiting_new.size());
}

int64_t Scheduler::num_running() const {
  return static_cast<int64_t>(state_->running.size());
}

int64_t Scheduler::num_paused() const {
  return state_->num_paused;
}

int64_t Scheduler::num_started() const {
  return num_running() + num_paused() + static_cast<int64_t>(state_->waiting_started.size());
}

int64_t Scheduler::num_free_blocks() const {
  return state_->pool.num_free();
}

// What must hold between any two calls, counted from scratch.
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
    if (member.paused) {
      ++num_paused;
      PACE_CHECK(member.started, "member ", slot, " paused before it started");
      return;
    }
    ++num_waiting;
    const auto& line = member.started ? s.waiting_started : s.waiting_new;
    const auto place = line.find(member.order);
    PACE_CHECK(place != line.end() && place->second == slot, "member ", slot, " is not in line");
  }

  void CheckRunning(MemberSlot slot, const Member& member) {
    const Group& group = s.GroupOf(member);
    ++num_running[static_cast<size_t>(member.group)];
    if (member.may_grow()) ++num_growing;
    PACE_CHECK(member.started && member.num_missing() >= 1, "member ", slot, " has nothing to run");
    PACE_CHECK(!member.joined || group.complete(), "member ", slot, " joined half a shared prompt");
    // The block of the newest token comes with the plan that runs it.
    const auto num_blocks = static_cast<int64_t>(member.blocks.size());
    PACE_CHECK(num_blocks >= BlocksOf(member.num_tokens - 1) && num_blocks <= member.max_blocks,
               "member ", slot, " has ", num_blocks, " blocks for ", member.num_tokens, " tokens");
    for (size_t i = 0; i < member.blocks.size(); ++i) {
      const BlockId block = member.blocks[i];
      if (i < static_cast<size_t>(group.num_whole_blocks())) {
        PACE_CHECK(block == group.blocks.at(i), "member ", slot, " left its shared prompt");
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
      PACE_CHECK(static_cast<int64_t>(group.blocks.size()) == BlocksOf(group.num_shared_tokens),
                 "shared prompt ", index, " has ", group.blocks.size(), " blocks");
      if (group.num_running == 0) ++num_idle;
    } else {
      PACE_CHECK(group.num_cached == 0, "shared prompt ", index, " is cached nowhere");
      PACE_CHECK(group.num_running == 0 || group.num_shared_tokens == 0, "shared prompt ", index,
                 " is missing");
    }
    Count(group.blocks);
  }

  void CheckTotals() const {
    PACE_CHECK(num_idle == s.idle.size(), num_idle, " shared prompts are idle, not ",
               s.idle.size());
    PACE_CHECK(num_growing == s.num_growing, num_growing, " members grow, not ", s.num_growing);
    PACE_CHECK(num_paused == s.num_paused, num_paused, " are paused, not ", s.num_paused);
    PACE_CHECK(num_waiting == s.waiting_started.size() + s.waiting_new.size(), num_waiting,
               " wait");
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
  int64_t num_paused = 0;
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
