// Scheduler decides what the next pass runs, and who owns which block of the KV
// cache. It is pure: it knows lengths and blocks, not tokens, weights or time.
//
// A group's prompt, but for its last token, is a *prefix*: computed once, its
// whole blocks shared by the members, its last partial block copied for each.
// Every member then runs the last prompt token and what it generated itself, so
// all members look alike: a sequence, of which `num_cached` tokens are in the
// cache. When a chunk reaches the end of a sequence, its last row is sampled.
// A member alone in its group has no prefix and runs its whole prompt.
//
// Order is arrival, then member. A member runs (holds blocks for all its
// tokens) or waits. The first to wait starts when its tokens fit and some room
// for growth is left; nobody overtakes it. When a growing member finds no
// block, prefixes without a running member go first, then the youngest running
// member loses its blocks and waits (preemption).
//
// A pass holds at most max_pass_tokens rows: one for every member that decodes,
// then chunks of those that catch up (prefixes, new, preempted or invalidated
// members), oldest first. At most max_pass_tokens less a quarter of it run at
// once, so decoding never lacks rows and catching up always gets some. After an
// invalidation members thus catch up one after the other, and the first decode
// while the rest is rebuilt: the rows of the rebuild are the same in any order,
// so this costs the last member no more than the rows decoded meanwhile, and
// wastes none.
//
// Progress. A group is refused unless each member fits alone. Take the oldest
// running member: it is preempted only as the youngest, so alone, and then
// every other block is free or of a prefix that goes first, so it finds one.
// It gets a row in every pass: while it catches up, at most one member less
// than max_pass_tokens decodes. So it finishes, and by induction so does every
// running member; before the last of them has, or then at the latest, the
// first to wait starts. A member that was preempted (when no block was free)
// starts again only with as many blocks free as its preemption gave back, and one of
// these went at once: so not before somebody finished or was cancelled, or when
// nobody grows any more. The two cannot alternate.
//
// Cost: O(running members) per pass, no allocation once the vectors have grown.
// Thread-safety: none. CheckInvariants() holds between any two calls.
#ifndef PACE_ROLLOUT_SCHEDULER_H_
#define PACE_ROLLOUT_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "model/decoder.h"

namespace pace {

struct SchedulerOptions {
  int64_t num_blocks = 0;
  // Rows of one pass; at least 1. Smaller: smoother decoding, slower prefill,
  // fewer members at once.
  int64_t max_pass_tokens = 512;
  // Members that hold blocks at once. 0 = as memory and max_pass_tokens allow.
  int64_t max_running = 0;
  // Members that decode hold a block for the token behind their next one, where one is
  // free; nobody loses any for it.
  bool room_ahead = false;

  [[nodiscard]] Status Validate() const;
};

// Names a member from Add until it finishes or is cancelled, then perhaps
// another: a small number, for tables beside the scheduler's own.
using MemberSlot = int32_t;

// A part of a pass: tokens [start, start + num_tokens) of a prefix or member.
struct PlannedChunk {
  MemberSlot slot = 0;  // of a prefix: any member of the group
  bool is_prefix = false;
  bool reaches_end = false;  // the last row is to be sampled; never of a prefix
  int64_t start = 0;
  int64_t num_tokens = 0;
  int64_t num_rebuilt = 0;          // of these, rows that an invalidation took
  std::span<const BlockId> blocks;  // of tokens [0, start + num_tokens), or one more
};

// What became of a member whose last row was sampled.
enum class RowEnd : uint8_t {
  kGrows,  // by one token
  kRests,  // by one token; then it gives its blocks back and waits for Wake
  kEnds,
};

struct PassPlan {
  // Before the pass. No block is written twice, nor read and written.
  std::vector<BlockCopy> copies;
  std::vector<PlannedChunk> chunks;
  std::vector<MemberSlot> preempted;  // lost their blocks for this pass
  bool empty() const { return chunks.empty(); }
};

class Scheduler {
 public:
  // REQUIRES: options valid
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();

  // A group: its members share a prompt. num_generated: what each already has
  // behind it (resumed); max_generated: what each may have in the end, more
  // than it has. Refused: a group with a member that would not fit alone.
  Result<std::vector<MemberSlot>> Add(int64_t num_prompt_tokens, int64_t max_generated,
                                      std::span<const int64_t> num_generated);

  // The next pass; empty when nothing may run. A plan that is not empty ends
  // with Commit or Abandon, before anything else, and is valid until then.
  const PassPlan& Next();
  // The planned chunks are in the cache; for each that reaches its end, in order,
  // what became of its member.
  void Commit(std::span<const RowEnd> ends);
  // The pass failed. Nothing in the cache is trusted any more; no member grew.
  void Abandon();

  // A member that rests holds nothing and stands in no line; it counts as begun.
  // REQUIRES: just added; resting, and still short of its longest.
  void Rest(MemberSlot slot);
  void Wake(MemberSlot slot, int64_t num_more_tokens);

  // Ends a member. REQUIRES: unfinished
  void Cancel(MemberSlot slot);
  // What is in the cache no longer holds (new weights): every member and prefix
  // is computed again, in the old order.
  void InvalidateCache();
  // While true, members that have not begun wait: what has begun drains.
  void set_hold_new(bool hold);

  int64_t num_unfinished() const;
  int64_t num_running() const;
  int64_t num_resting() const;
  // Unfinished members that held blocks once, or were added with tokens of
  // their own while nothing was on hold.
  int64_t num_begun() const;
  int64_t num_free_blocks() const;

  // Aborts if blocks leak or are shared wrongly, or if counts disagree.
  void CheckInvariants() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_SCHEDULER_H_
