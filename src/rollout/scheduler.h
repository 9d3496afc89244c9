// Scheduler plans forward passes and assigns blocks of the KV cache. It is pure: it knows
// lengths and blocks, not tokens, weights or time.
//
// A group's *shared prompt* is its prompt without the last token. It is computed once; members
// share its whole blocks and copy its last partial block. Every member then runs the last prompt
// token and its own generated tokens, so all members look alike: a sequence of which `num_cached`
// tokens are in the cache. When a chunk reaches the end of a sequence, its last row is sampled.
// A group of one member shares nothing; the member runs its whole prompt.
//
// Members are ordered by arrival, then by index in their group. A member is running (it holds
// blocks for all its tokens), waiting or paused. The first waiting member starts when its tokens
// fit and some room for growth is left; no other overtakes it. When a growing member needs a
// block and none is free, shared prompts without a running member are evicted first; then the
// youngest running member loses its blocks and waits (preemption).
//
// A pass has at most max_pass_tokens rows: one for every decoding member, then prefill chunks
// (shared prompts; new, preempted or invalidated members), oldest first. At most three quarters
// of max_pass_tokens members run, so every decoding member gets a row and prefill always gets
// some. After an invalidation members are re-prefilled one after the other, and the first ones
// decode while the others wait. The number of re-prefilled rows is the same in any order, so this
// delays the last member only by the rows decoded meanwhile.
//
// Progress. A group is refused unless each member fits alone. The oldest running member is
// preempted only if it is also the youngest, hence alone; then every other block is free or of a
// shared prompt that is evicted first, so it finds a block. It gets a row in every pass: while it
// prefills, fewer than max_pass_tokens members decode. So it finishes, and by induction so does
// every running member; at the latest then the first waiting member starts. A preempted member
// restarts only when as many blocks are free as its preemption released. One of these was taken
// at once, so it cannot restart before another member finished, was cancelled or stopped growing:
// preemption and restart cannot alternate.
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
  // Rows of one pass; at least 1. Smaller: smoother decoding, slower prefill, fewer running
  // members.
  int64_t max_pass_tokens = 512;
  // Running members. 0 = as memory and max_pass_tokens allow.
  int64_t max_running = 0;
  // Decoding members also hold a block for the token after their next one, for a speculative
  // pass, if one is free. No member is preempted for it.
  bool speculative_room = false;

  [[nodiscard]] Status Validate() const;
};

// Identifies a member from Add until it finishes or is cancelled; then it may be reused. A small
// number, usable as an index.
using MemberSlot = int32_t;

// A part of a pass: tokens [start, start + num_tokens) of a shared prompt or member.
struct PlannedChunk {
  MemberSlot slot = 0;  // of a shared prompt: any member of the group
  bool is_shared_prompt = false;
  bool reaches_end = false;  // the last row is sampled; never of a shared prompt
  int64_t start = 0;
  int64_t num_tokens = 0;
  int64_t num_reprefilled = 0;      // of these, rows lost by an invalidation
  std::span<const BlockId> blocks;  // of tokens [0, start + num_tokens), or one more
};

// What happens to a member whose last row was sampled.
enum class RowEnd : uint8_t {
  kGrows,   // by one token
  kPauses,  // grows by one token, releases its blocks and waits for Resume
  kEnds,
};

struct PassPlan {
  // To be done before the pass. No block is written twice, or both read and written.
  std::vector<BlockCopy> copies;
  std::vector<PlannedChunk> chunks;
  std::vector<MemberSlot> preempted;  // lost their blocks to this pass
  bool empty() const { return chunks.empty(); }
};

class Scheduler {
 public:
  // REQUIRES: options valid
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();

  // A group of members that share a prompt. num_generated: tokens that each already has
  // (resumed); max_generated: tokens that each may have in the end, more than it has now.
  // Refused: a group with a member that would not fit alone.
  Result<std::vector<MemberSlot>> Add(int64_t num_prompt_tokens, int64_t max_generated,
                                      std::span<const int64_t> num_generated);

  // The next pass; empty if nothing can run. A plan that is not empty must be followed by Commit
  // or Abandon before any other call, and is valid until then.
  const PassPlan& Next();
  // The planned chunks are in the cache. `ends`: for each chunk that reaches its end, in order,
  // what happens to its member.
  void Commit(std::span<const RowEnd> ends);
  // The pass failed: the whole cache is invalid and no member grew.
  void Abandon();

  // A paused member holds no blocks and does not wait for any; it counts as started.
  // REQUIRES: just added
  void Pause(MemberSlot slot);
  // REQUIRES: paused; with these tokens still shorter than its maximum
  void Resume(MemberSlot slot, int64_t num_more_tokens);

  // Ends a member. REQUIRES: unfinished
  void Cancel(MemberSlot slot);
  // The cache is stale (new weights): every member and shared prompt is re-prefilled, in the
  // same order.
  void InvalidateCache();
  // While true, members that have not started wait, so that the others drain.
  void set_hold_new(bool hold);

  int64_t num_unfinished() const;
  int64_t num_running() const;
  int64_t num_paused() const;
  // Unfinished members that held blocks once, or were added with generated tokens while new
  // members were not held.
  int64_t num_started() const;
  int64_t num_free_blocks() const;

  // Aborts if blocks leak or are shared wrongly, or if counts disagree.
  void CheckInvariants() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_SCHEDULER_H_
