// Staleness, defined once.
//
// A response is a row of tokens, each sampled by some policy version. With c =
// the trainer's version when the response finished and j = the step that draws
// it, over its T policy tokens:
//
//   generation staleness  K_gen  = mean of (c - v_t)
//   waiting staleness     K_wait = j - c
//   lag                          = mean of (j - v_t) = K_gen + K_wait
//
// A group's values are means over its members. Arithmetic is fixed so that
// ties fall the same way everywhere: doubles, sums in member order, integers
// summed exactly before the one division.
//
// Thread-safety: values and pure functions. Stable: docs/library.md.
#ifndef PACE_CORE_STALENESS_H_
#define PACE_CORE_STALENESS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/version.h"

namespace pace {

// A run of consecutive policy tokens sampled by one version.
struct Segment {
  PolicyVersion version;
  int64_t num_tokens = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

// Per-token versions of one response, stored as runs in generation order.
class VersionRuns {
 public:
  VersionRuns() = default;
  explicit VersionRuns(std::vector<Segment> segments);

  // Adds tokens; merges with the last run when the version is the same.
  // REQUIRES: num_tokens > 0, version >= the last one.
  void Append(PolicyVersion version, int64_t num_tokens);
  void Clear() { segments_.clear(); }

  const std::vector<Segment>& segments() const { return segments_; }
  bool empty() const { return segments_.empty(); }

 private:
  std::vector<Segment> segments_;
};

int64_t NumTokens(std::span<const Segment> segments);

// K_gen of one response. REQUIRES: segments hold at least one token.
double GenerationStaleness(std::span<const Segment> segments, PolicyVersion completed);

// What admission needs to know of one finished response.
struct MemberSummary {
  PolicyVersion completed;  // c
  PolicyVersion oldest;     // the smallest v_t
  int64_t num_tokens = 0;
  double generation = 0;  // K_gen
  std::optional<double> prefix_score;

  // REQUIRES: segments hold at least one token, no version above `completed`.
  static MemberSummary Of(std::span<const Segment> segments, PolicyVersion completed,
                          std::optional<double> prefix_score);
};

// What admission needs to know of one finished group. Everything here is fixed
// when the group completes; staleness at a step is asked for with that step.
struct GroupSummary {
  GroupId id;
  PolicyVersion assembled;  // the trainer's version when the last member finished
  PolicyVersion oldest;     // the smallest v_t of any member
  int64_t num_members = 0;
  int64_t completed_sum = 0;  // sum of the members' c
  int64_t num_tokens = 0;
  int64_t num_bytes = 0;               // of the payload, for the pool's bound
  double generation = 0;               // mean K_gen
  std::optional<double> prefix_score;  // mean over the members that have one
  // The member with the largest lag (at any step: waiting adds the same to all
  // orderings of K_gen - c).
  PolicyVersion stalest_completed;
  double stalest_generation = 0;
  // In member order; valid as long as the owner of the group keeps it.
  std::span<const MemberSummary> members;

  // REQUIRES: members is not empty.
  static GroupSummary Of(GroupId id, PolicyVersion assembled,
                         std::span<const MemberSummary> members, int64_t num_bytes);

  // Means over members at step j. (Before the group was assembled the pool part
  // is negative; only comparisons between groups mean anything then.)
  double Waiting(PolicyVersion step) const;
  double WaitingAssembly() const;
  double WaitingPool(PolicyVersion step) const;
  double LagAt(PolicyVersion step) const { return generation + Waiting(step); }
  // The largest lag of a member, and of a single token.
  double MaxMemberLag(PolicyVersion step) const;
  int64_t MaxTokenLag(PolicyVersion step) const { return Lag(oldest, step); }
};

}  // namespace pace

#endif  // PACE_CORE_STALENESS_H_
