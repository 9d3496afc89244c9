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
  const int64_t num_prefix_tokens = shares ? num_prompt_tokens - 1 : 0;
  // The last token is sampled, never run. A partial block of the prefix exists
  // beside the member's own copy of it.
  const int64_t max_blocks = BlocksOf(num_prompt_tokens + max_generated - 1);
  const int64_t num_needed = max_blocks + (num_prefix_tokens % kBlockTokens != 0 ? 1 : 0);
  if (num_needed > s.pool.num_blocks()) {
    return InvalidArgument("prompt of ", num_prompt_tokens, " and max_tokens of ", max_generated,
                           " need ", num_needed, " KV blocks of ", kBlockTokens,
                           " tokens: the cache has ", s.pool.num_blocks(),
                           " (lower max_tokens or give the cache more memory)");
  }

  const State::GroupIndex index = s.NewGroup();
  State::Group& group = s.groups[static_cast<size_t>(index)];
  group.arrival = s.next_order;
  group.num_prefix_tokens = num_prefix_tokens;
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
    member.begun = generated > 0 && !s.hold_new;
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
    if (!s.At(slot).resting) s.Forget(slot);
    return true;
  });
}

void Scheduler::Rest(MemberSlot slot) {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  State::Member& member = s.At(slot);
  PACE_CHECK(member.in_use && !member.running && !member.resting, "member ", slot, " cannot rest");
  (member.begun ? s.waiting_begun : s.waiting_new).erase(member.order);
  member.begun = true;
  member.resting = true;
  ++s.num_resting;
}

void Scheduler::Wake(MemberSlot slot, int64_t num_more_tokens) {
  State& s = *state_;
  PACE_CHECK(!s.planned, "a plan waits for its commit");
  State::Member& member = s.At(slot);
  PACE_CHECK(member.in_use && member.resting && num_more_tokens >= 0, "member ", slot,
             " does not rest");
  member.num_tokens += num_more_tokens;
  PACE_CHECK(BlocksOf(member.num_tokens) <= member.max_blocks, "member ", slot, " is too long");
  member.resting = false;
  --s.num_resting;
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
  } else if (member.resting) {
    --s.num_resting;
  } else {
    (member.begun ? s.waiting_begun : s.waiting_new).erase(member.order);
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
    s.ReleasePrefix(group);
  }
  s.idle.clear();
}

void Scheduler::set_hold_new(bool hold) {
  state_->hold_new = hold;
}

int64_t Scheduler::num_unfinished() const {
  return num_begun() + static_cast<int64_t>(state_->waiting_new.size());
}

int64_t Scheduler::num_running() const {
  return static_cast<int64_t>(state_->running.size());
}

int64_t Scheduler::num_resting() const {
  return state_->num_resting;
}

int64_t Scheduler::num_begun() const {
  return num_running() + num_resting() + static_cast<int64_t>(state_->waiting_begun.size());
}

int64_t Scheduler::num_free_blocks() const {
  return state_->pool.num_free();
}

}  // namespace pace
