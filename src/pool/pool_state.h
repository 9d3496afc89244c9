// PoolState: finished groups that wait to be drawn.
//
// A plain state machine. The draw order chooses the next group; the admission policy's score
// chooses what to evict when a bound is exceeded. The pool itself makes no decisions, never
// blocks and never refuses a group.
//
//   PoolState pool(options);
//   for (const Eviction& eviction : pool.Put(std::move(group), policy)) Drop(eviction);
//   while (!pool.empty()) Judge(pool.Draw(policy));
//
// Cost: O(1) per put and draw in completion and newest order without bounds; otherwise
// O(log n), and one O(n) pass per step, because scores change only when a step begins.
//
// Thread-safety: none; one owner, the coordinator.
#ifndef PACE_POOL_POOL_STATE_H_
#define PACE_POOL_POOL_STATE_H_

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "config/run_options.h"
#include "control/admission_policy.h"
#include "core/decision.h"
#include "core/staleness.h"
#include "core/status.h"

namespace pace {

// A finished group. `members` is empty unless the admission policy reads them.
struct PooledGroup {
  GroupSummary summary;
  std::vector<MemberSummary> members;

  PooledGroup() = default;
  // Keeps `members` only if asked to, and points the summary at them.
  PooledGroup(const GroupSummary& summary, std::vector<MemberSummary> members, bool keep_members);
  // A copy with its own members. (Moving is cheap and keeps the span valid.)
  PooledGroup Copy() const;
};

struct Eviction {
  GroupId group;
  Reason reason = Reason::kPoolGroups;
};

class PoolState {
 public:
  explicit PoolState(const PoolOptions& options) : options_(options) {}

  // Adds a group, then evicts the highest scores until every bound holds. The
  // group itself may be among them; the last group left is never evicted.
  std::vector<Eviction> Put(PooledGroup group, const AdmissionPolicy& policy);

  // Takes the next group in draw order. REQUIRES: !empty()
  PooledGroup Draw(const AdmissionPolicy& policy);

  // Takes these groups, whatever the draw order; in completion order. REQUIRES: all are in the
  // pool, and the ids ascend.
  std::vector<PooledGroup> TakeAll(std::span<const GroupId> groups);

  // What waits, in completion order. Members stay in the pool.
  std::vector<GroupSummary> Summaries() const;

  // The policy has begun a step: scores have changed.
  void OnStepBegan() { ranked_ = false; }

  bool empty() const { return num_groups_ == 0; }
  int64_t occupancy() const { return num_groups_; }
  int64_t num_bytes() const { return num_bytes_; }
  int64_t num_tokens() const { return num_tokens_; }

  // In completion order.
  std::vector<PooledGroup> Save() const;
  // REQUIRES: empty()
  void Restore(std::vector<PooledGroup> groups);

  // Stops the process when counts and contents disagree.
  void CheckInvariants() const;

 private:
  // Taken entries stay in the deque until they reach an end or the pool is compacted.
  struct Entry {
    PooledGroup group;
    bool present = false;
  };
  struct Ranked {
    double score;
    int64_t position;  // base_ + index in entries_
    GroupId group;     // positions at the end are reused, ids are not
  };

  PooledGroup Take(int64_t position);
  PooledGroup Remove(Entry& entry);
  Entry& At(int64_t position) { return entries_[static_cast<size_t>(position - base_)]; }
  bool IsPresent(const Ranked& ranked) const;
  void Rank(const AdmissionPolicy& policy);
  void PushRanked(const Ranked& ranked);
  static bool LeavesLaterAsLowest(const Ranked& a, const Ranked& b);
  static bool LeavesLaterAsHighest(const Ranked& a, const Ranked& b);
  // Pops until an entry is still present.
  int64_t Pop(std::vector<Ranked> PoolState::* heap,
              bool (*leaves_later)(const Ranked&, const Ranked&), const AdmissionPolicy& policy);
  bool IsBounded() const { return options_.max_groups > 0 || options_.max_bytes > 0; }
  void TrimEnds();
  void CompactIfSparse();

  const PoolOptions options_;
  std::deque<Entry> entries_;
  int64_t base_ = 0;  // position of entries_.front()
  int64_t num_groups_ = 0;
  int64_t num_bytes_ = 0;
  int64_t num_tokens_ = 0;

  // Heaps over the present entries, and some taken ones; valid while ranked_. Built on first
  // use in a step.
  bool ranked_ = false;
  std::vector<Ranked> lowest_, highest_;
};

}  // namespace pace

#endif  // PACE_POOL_POOL_STATE_H_
