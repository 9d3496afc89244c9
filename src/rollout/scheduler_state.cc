#include "rollout/scheduler_state.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

// Room that stays free when a member starts beside others: a block for each
// that grows, but no more than this share of the cache. It keeps the next
// preemption some passes away.
constexpr int64_t kGrowthShare = 8;

int64_t MaxRunning(const SchedulerOptions& options) {
  const int64_t by_rows =
      std::max<int64_t>(1, options.max_pass_tokens - options.max_pass_tokens / 4);
  return options.max_running > 0 ? std::min(options.max_running, by_rows) : by_rows;
}

// How many of tokens [start, start + num_tokens) are below `end`.
int64_t NumBelow(int64_t end, int64_t start, int64_t num_tokens) {
  return std::clamp<int64_t>(end - start, 0, num_tokens);
}

}  // namespace

Scheduler::State::State(const SchedulerOptions& options)
    : max_pass_tokens(options.max_pass_tokens),
      max_running(MaxRunning(options)),
      speculative_room(options.speculative_room),
      pool(options.num_blocks) {}

Scheduler::State::GroupIndex Scheduler::State::NewGroup() {
  if (free_groups.empty()) {
    free_groups.push_back(static_cast<GroupIndex>(groups.size()));
    groups.emplace_back();
  }
  const GroupIndex index = free_groups.back();
  free_groups.pop_back();
  groups[static_cast<size_t>(index)] = {};
  groups[static_cast<size_t>(index)].in_use = true;
  return index;
}

MemberSlot Scheduler::State::NewMember() {
  if (free_members.empty()) {
    free_members.push_back(static_cast<MemberSlot>(members.size()));
    members.emplace_back();
  }
  const MemberSlot slot = free_members.back();
  free_members.pop_back();
  At(slot) = {};
  At(slot).in_use = true;
  return slot;
}

void Scheduler::State::Forget(MemberSlot slot) {
  Member& member = At(slot);
  Group& group = GroupOf(member);
  member.in_use = false;
  free_members.push_back(slot);
  if (--group.num_unfinished > 0) return;
  if (group.resident()) {
    std::erase(idle, member.group);
    ReleaseSharedPrompt(group);
  }
  group.in_use = false;
  free_groups.push_back(member.group);
}

void Scheduler::State::PutInLine(MemberSlot slot) {
  const Member& member = At(slot);
  (member.started ? waiting_started : waiting_new).emplace(member.order, slot);
}

void Scheduler::State::GiveBack(Member& member) {
  if (member.may_grow()) --num_growing;
  for (const BlockId block : member.blocks) pool.Release(block);
  member.blocks.clear();
  member.num_cached = 0;
  member.joined = false;
  member.running = false;
  Group& group = GroupOf(member);
  if (--group.num_running == 0 && group.resident()) idle.push_back(member.group);
}

void Scheduler::State::ReleaseSharedPrompt(Group& group) {
  for (const BlockId block : group.blocks) pool.Release(block);
  group.blocks.clear();
  group.num_cached = 0;
}

bool Scheduler::State::MakeRoom(int64_t num_blocks, const Group* excluded) {
  if (pool.num_free() >= num_blocks) return true;
  int64_t num_idle_blocks = 0;
  for (const GroupIndex index : idle) {
    const Group& group = groups[static_cast<size_t>(index)];
    if (&group != excluded) num_idle_blocks += static_cast<int64_t>(group.blocks.size());
  }
  if (pool.num_free() + num_idle_blocks < num_blocks) return false;
  while (pool.num_free() < num_blocks) {
    const auto youngest =
        std::max_element(idle.begin(), idle.end(), [&](GroupIndex a, GroupIndex b) {
          const Group& first = groups[static_cast<size_t>(a)];
          const Group& second = groups[static_cast<size_t>(b)];
          if (&first == excluded || &second == excluded) return &first == excluded;
          return first.arrival < second.arrival;
        });
    ReleaseSharedPrompt(groups[static_cast<size_t>(*youngest)]);
    idle.erase(youngest);
  }
  return true;
}

void Scheduler::State::PreemptYoungest() {
  PACE_CHECK(running.size() > 1, "the only running member lacks a block");
  const MemberSlot slot = running.back();
  running.pop_back();
  GiveBack(At(slot));
  PutInLine(slot);
  plan.preempted.push_back(slot);
}

bool Scheduler::State::Grow(MemberSlot slot) {
  Member& member = At(slot);
  while (!MakeRoom(1, nullptr)) {
    const bool is_youngest = running.back() == slot;
    PreemptYoungest();
    if (is_youngest) return false;
  }
  member.blocks.push_back(pool.Take());
  if (!member.may_grow()) --num_growing;
  return true;
}

void Scheduler::State::GrowSpeculatively(Member& member) {
  const bool has_room = BlocksOf(member.num_tokens + 1) <= std::ssize(member.blocks);
  if (has_room || !member.may_grow() || pool.num_free() == 0) return;
  member.blocks.push_back(pool.Take());
  if (!member.may_grow()) --num_growing;
}

bool Scheduler::State::AdmitNext(MemberSlot& slot) {
  if (static_cast<int64_t>(running.size()) >= max_running) return false;
  const bool has_new = !hold_new && !waiting_new.empty();
  if (!has_new && waiting_started.empty()) return false;
  const bool take_new = has_new && (waiting_started.empty() ||
                                    waiting_new.begin()->first < waiting_started.begin()->first);
  auto& line = take_new ? waiting_new : waiting_started;
  slot = line.begin()->second;
  const Member& member = At(slot);
  Group& group = GroupOf(member);
  // For a single member a shared prompt would only cost one more pass.
  if (group.num_unfinished == 1 && !group.resident()) group.num_shared_tokens = 0;

  int64_t num_needed = BlocksOf(member.num_tokens) - group.num_whole_blocks();
  const bool may_grow = BlocksOf(member.num_tokens) < member.max_blocks;
  if (!group.resident()) num_needed += BlocksOf(group.num_shared_tokens);
  if (!running.empty()) {
    num_needed += std::min(num_growing + (may_grow ? 1 : 0),
                           std::max<int64_t>(1, pool.num_blocks() / kGrowthShare));
  }
  if (!MakeRoom(num_needed, &group)) return false;
  line.erase(line.begin());
  Start(slot);
  return true;
}

void Scheduler::State::Start(MemberSlot slot) {
  Member& member = At(slot);
  Group& group = GroupOf(member);
  if (group.num_running++ == 0 && group.resident()) std::erase(idle, member.group);
  if (!group.resident()) {
    for (int64_t i = BlocksOf(group.num_shared_tokens); i > 0; --i) {
      group.blocks.push_back(pool.Take());
    }
  }
  member.blocks.reserve(static_cast<size_t>(member.max_blocks));
  for (int64_t i = 0; i < group.num_whole_blocks(); ++i) {
    const BlockId block = group.blocks[static_cast<size_t>(i)];
    pool.Share(block);
    member.blocks.push_back(block);
  }
  while (static_cast<int64_t>(member.blocks.size()) < BlocksOf(member.num_tokens)) {
    member.blocks.push_back(pool.Take());
  }
  if (member.may_grow()) ++num_growing;
  member.started = true;
  member.running = true;
  // Nearly always the end: only members that were on hold can be older.
  const auto place =
      std::upper_bound(running.begin(), running.end(), slot,
                       [this](MemberSlot a, MemberSlot b) { return At(a).order < At(b).order; });
  running.insert(place, slot);
}

void Scheduler::State::PlanDecoding() {
  // Oldest first: preempted members come later in the order.
  for (size_t i = 0; i < running.size(); ++i) {
    const MemberSlot slot = running[i];
    Member& member = At(slot);
    if (!member.decodes()) {
      catching_up.push_back(slot);
      continue;
    }
    const bool needs_block =
        BlocksOf(member.num_tokens) > static_cast<int64_t>(member.blocks.size());
    if (needs_block && !Grow(slot)) return;
    if (speculative_room) GrowSpeculatively(member);
    PlanMemberChunk(slot, 1);
  }
}

void Scheduler::State::PlanCatchingUp() {
  for (const MemberSlot slot : catching_up) {
    if (num_rows_left == 0) return;
    PlanPartOf(slot);
  }
  MemberSlot slot = 0;
  while (num_rows_left > 0 && AdmitNext(slot)) PlanPartOf(slot);
}

void Scheduler::State::PlanPartOf(MemberSlot slot) {
  Member& member = At(slot);
  Group& group = GroupOf(member);
  if (!group.complete()) {
    const int64_t num_missing = group.num_shared_tokens - group.num_cached;
    if (!group.in_plan) PlanSharedChunk(slot, std::min(num_missing, num_rows_left));
    return;
  }
  if (!member.joined) {
    member.joined = true;
    member.num_cached = group.num_shared_tokens;
    if (group.has_partial_block()) {
      plan.copies.push_back({.from = group.blocks.back(),
                             .to = member.blocks[static_cast<size_t>(group.num_whole_blocks())]});
    }
  }
  PlanMemberChunk(slot, std::min(member.num_missing(), num_rows_left));
}

void Scheduler::State::PlanMemberChunk(MemberSlot slot, int64_t num_tokens) {
  const Member& member = At(slot);
  const int64_t end = member.num_cached + num_tokens;
  const int64_t num_blocks =
      speculative_room ? std::min(BlocksOf(end + 1), std::ssize(member.blocks)) : BlocksOf(end);
  plan.chunks.push_back(
      {.slot = slot,
       .is_shared_prompt = false,
       .reaches_end = end == member.num_tokens,
       .start = member.num_cached,
       .num_tokens = num_tokens,
       .num_reprefilled = NumBelow(member.num_lost, member.num_cached, num_tokens),
       .blocks = std::span(member.blocks).first(static_cast<size_t>(num_blocks))});
  num_rows_left -= num_tokens;
}

void Scheduler::State::PlanSharedChunk(MemberSlot slot, int64_t num_tokens) {
  Group& group = GroupOf(At(slot));
  group.in_plan = true;
  const int64_t end = group.num_cached + num_tokens;
  plan.chunks.push_back(
      {.slot = slot,
       .is_shared_prompt = true,
       .reaches_end = false,
       .start = group.num_cached,
       .num_tokens = num_tokens,
       .num_reprefilled = NumBelow(group.num_lost, group.num_cached, num_tokens),
       .blocks = std::span(group.blocks).first(static_cast<size_t>(BlocksOf(end)))});
  num_rows_left -= num_tokens;
}

int64_t Scheduler::State::CommitChunk(const PlannedChunk& chunk, std::span<const RowEnd> ends,
                                      int64_t num_ended) {
  Member& member = At(chunk.slot);
  if (chunk.is_shared_prompt) {
    Group& group = GroupOf(member);
    group.in_plan = false;
    group.num_cached += chunk.num_tokens;
    if (group.complete()) group.num_lost = 0;
    return num_ended;
  }
  member.num_cached += chunk.num_tokens;
  if (!chunk.reaches_end) return num_ended;
  member.num_lost = 0;
  PACE_CHECK(num_ended < static_cast<int64_t>(ends.size()), "a sampled row without a result");
  const RowEnd end = ends[static_cast<size_t>(num_ended)];
  if (end != RowEnd::kGrows) GiveBack(member);
  if (end != RowEnd::kEnds) ++member.num_tokens;
  if (end == RowEnd::kPauses) {
    member.paused = true;
    ++num_paused;
  }
  return num_ended + 1;
}

}  // namespace pace
