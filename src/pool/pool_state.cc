#include "pool/pool_state.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

// Below this many entries compaction is not worth it.
constexpr size_t kMinCompactEntries = 64;

}  // namespace

PooledGroup::PooledGroup(const GroupSummary& given, std::vector<MemberSummary> given_members,
                         bool keep_members)
    : summary(given) {
  if (keep_members) members = std::move(given_members);
  summary.members = members;
}

PooledGroup PooledGroup::Copy() const {
  return {summary, members, true};
}

std::vector<Eviction> PoolState::Put(PooledGroup group, const AdmissionPolicy& policy) {
  const int64_t position = base_ + static_cast<int64_t>(entries_.size());
  if (ranked_) PushRanked({policy.Score(group.summary), position, group.summary.id});
  num_bytes_ += group.summary.num_bytes;
  num_tokens_ += group.summary.num_tokens;
  ++num_groups_;
  entries_.push_back({std::move(group), true});

  std::vector<Eviction> evictions;
  while (num_groups_ > 1) {
    Reason reason = Reason::kPoolGroups;
    if (options_.max_bytes > 0 && num_bytes_ > options_.max_bytes) {
      reason = Reason::kPoolBytes;
    } else if (options_.max_groups == 0 || num_groups_ <= options_.max_groups) {
      break;
    }
    evictions.push_back(
        {Take(Pop(&PoolState::highest_, LeavesLaterAsHighest, policy)).summary.id, reason});
  }
  return evictions;
}

PooledGroup PoolState::Draw(const AdmissionPolicy& policy) {
  PACE_CHECK(!empty(), "draw from an empty pool");
  switch (options_.draw_order) {
    case DrawOrder::kCompletion:
      return Take(base_);
    case DrawOrder::kNewest:
      return Take(base_ + static_cast<int64_t>(entries_.size()) - 1);
    case DrawOrder::kLowestScore:
      return Take(Pop(&PoolState::lowest_, LeavesLaterAsLowest, policy));
  }
  PACE_CHECK(false, "unknown draw order");
}

std::vector<PooledGroup> PoolState::TakeAll(std::span<const GroupId> groups) {
  std::vector<PooledGroup> taken;
  if (groups.empty()) return taken;
  for (Entry& entry : entries_) {
    if (!entry.present) continue;
    if (!std::binary_search(groups.begin(), groups.end(), entry.group.summary.id)) continue;
    taken.push_back(Remove(entry));
  }
  PACE_CHECK(taken.size() == groups.size(), "a group to be taken is not in the pool");
  TrimEnds();
  CompactIfSparse();
  return taken;
}

std::vector<GroupSummary> PoolState::Summaries() const {
  std::vector<GroupSummary> summaries;
  summaries.reserve(static_cast<size_t>(num_groups_));
  for (const Entry& entry : entries_) {
    if (entry.present) summaries.push_back(entry.group.summary);
  }
  return summaries;
}

PooledGroup PoolState::Take(int64_t position) {
  PooledGroup group = Remove(At(position));
  TrimEnds();
  CompactIfSparse();
  return group;
}

PooledGroup PoolState::Remove(Entry& entry) {
  PACE_CHECK(entry.present, "group taken twice");
  entry.present = false;
  --num_groups_;
  num_bytes_ -= entry.group.summary.num_bytes;
  num_tokens_ -= entry.group.summary.num_tokens;
  return std::move(entry.group);
}

bool PoolState::IsPresent(const Ranked& ranked) const {
  if (ranked.position < base_) return false;
  const auto index = static_cast<size_t>(ranked.position - base_);
  return index < entries_.size() && entries_[index].present &&
         entries_[index].group.summary.id == ranked.group;
}

void PoolState::TrimEnds() {
  while (!entries_.empty() && !entries_.front().present) {
    entries_.pop_front();
    ++base_;
  }
  while (!entries_.empty() && !entries_.back().present) entries_.pop_back();
}

void PoolState::CompactIfSparse() {
  const size_t num_present = static_cast<size_t>(num_groups_);
  if (entries_.size() < kMinCompactEntries || entries_.size() < 2 * num_present) return;
  std::deque<Entry> kept;
  for (Entry& entry : entries_) {
    if (entry.present) kept.push_back(std::move(entry));
  }
  base_ += static_cast<int64_t>(entries_.size());
  entries_ = std::move(kept);
  ranked_ = false;
}

void PoolState::Rank(const AdmissionPolicy& policy) {
  lowest_.clear();
  highest_.clear();
  ranked_ = true;
  std::vector<Ranked> all;
  all.reserve(static_cast<size_t>(num_groups_));
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].present) continue;
    const GroupSummary& summary = entries_[i].group.summary;
    all.push_back({policy.Score(summary), base_ + static_cast<int64_t>(i), summary.id});
  }
  if (IsBounded()) {
    highest_ = all;
    std::make_heap(highest_.begin(), highest_.end(), LeavesLaterAsHighest);
  }
  if (options_.draw_order == DrawOrder::kLowestScore) {
    lowest_ = std::move(all);
    std::make_heap(lowest_.begin(), lowest_.end(), LeavesLaterAsLowest);
  }
}

// Heap orders. Equal scores leave in completion order, the older one first.
bool PoolState::LeavesLaterAsLowest(const Ranked& a, const Ranked& b) {
  return a.score != b.score ? a.score > b.score : a.position > b.position;
}

bool PoolState::LeavesLaterAsHighest(const Ranked& a, const Ranked& b) {
  return a.score != b.score ? a.score < b.score : a.position > b.position;
}

void PoolState::PushRanked(const Ranked& ranked) {
  if (options_.draw_order == DrawOrder::kLowestScore) {
    lowest_.push_back(ranked);
    std::push_heap(lowest_.begin(), lowest_.end(), LeavesLaterAsLowest);
  }
  if (IsBounded()) {
    highest_.push_back(ranked);
    std::push_heap(highest_.begin(), highest_.end(), LeavesLaterAsHighest);
  }
}

int64_t PoolState::Pop(std::vector<Ranked> PoolState::* heap,
                       bool (*leaves_later)(const Ranked&, const Ranked&),
                       const AdmissionPolicy& policy) {
  if (!ranked_) Rank(policy);
  std::vector<Ranked>& ranking = this->*heap;
  for (;;) {
    PACE_CHECK(!ranking.empty(), "the ranking lost a group");
    std::pop_heap(ranking.begin(), ranking.end(), leaves_later);
    const Ranked first = ranking.back();
    ranking.pop_back();
    if (IsPresent(first)) return first.position;
  }
}

std::vector<PooledGroup> PoolState::Save() const {
  std::vector<PooledGroup> groups;
  for (const Entry& entry : entries_) {
    if (entry.present) groups.push_back(entry.group.Copy());
  }
  return groups;
}

void PoolState::Restore(std::vector<PooledGroup> groups) {
  PACE_CHECK(empty(), "restore into a pool that holds groups");
  entries_.clear();
  base_ = 0;
  ranked_ = false;
  for (PooledGroup& group : groups) {
    ++num_groups_;
    num_bytes_ += group.summary.num_bytes;
    num_tokens_ += group.summary.num_tokens;
    entries_.push_back({std::move(group), true});
  }
}

void PoolState::CheckInvariants() const {
  int64_t num_groups = 0;
  int64_t num_bytes = 0;
  int64_t num_tokens = 0;
  for (const Entry& entry : entries_) {
    if (!entry.present) continue;
    ++num_groups;
    num_bytes += entry.group.summary.num_bytes;
    num_tokens += entry.group.summary.num_tokens;
  }
  PACE_CHECK(num_groups == num_groups_, num_groups, " groups, counted ", num_groups_);
  PACE_CHECK(num_bytes == num_bytes_, num_bytes, " bytes, counted ", num_bytes_);
  PACE_CHECK(num_tokens == num_tokens_, num_tokens, " tokens, counted ", num_tokens_);
  PACE_CHECK(options_.max_groups == 0 || num_groups_ <= std::max<int64_t>(1, options_.max_groups),
             "pool holds ", num_groups_, " groups over its bound ", options_.max_groups);
  PACE_CHECK(options_.max_bytes == 0 || num_groups_ <= 1 || num_bytes_ <= options_.max_bytes,
             "pool holds ", num_bytes_, " bytes over its bound ", options_.max_bytes);
}

}  // namespace pace
