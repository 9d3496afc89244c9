// Decisions: what an admission policy answers, and why. Stable: docs/library.md.
//
// A Reason doubles as a metric label and as the word in decisions.jsonl, so
// its name never changes once released.
#ifndef PACE_CORE_DECISION_H_
#define PACE_CORE_DECISION_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/version.h"

namespace pace {

enum class Verdict { kAdmit, kReject };

enum class Reason {
  // pace
  kWarmingUp,    // fewer scores observed than the minimum
  kNoBudget,     // the pool asks for no rejection
  kUnderCutoff,  // score <= cutoff
  kOverCutoff,   // score > cutoff
  kTieAdmitted,  // score == cutoff, fractional ties or cutoff: pool, kept
  kTieRejected,  // score == cutoff, fractional ties or cutoff: pool, dropped
  kQuotaSpent,   // cutoff: pool, score > cutoff, after the quota of rejections was used
  // stale_k, oldest_token
  kWithinBound,
  kOverBound,
  // accept_all
  kUnfiltered,
  // the coordinator's progress guards
  kFreshestPossible,  // nothing fresher can come while this step waits
  kProgressGuard,     // too many rejections in this step
  // a group dropped without being drawn
  kPoolGroups,  // the pool's bound in groups
  kPoolBytes,   // the pool's bound in bytes
};

inline constexpr int kNumReasons = static_cast<int>(Reason::kPoolBytes) + 1;

std::string_view Name(Verdict verdict);
std::string_view Name(Reason reason);
std::optional<Reason> ReasonFromName(std::string_view name);

// What a step fixed before its first draw. Fields a policy does not have stay
// empty.
struct StepPlan {
  PolicyVersion step;
  int64_t occupancy = 0;                  // N_j
  std::optional<double> target_rate{};    // r_j
  std::optional<double> smoothed_rate{};  // the moving average of r_j
  std::optional<double> budget{};         // b_j
  std::optional<double> cutoff{};         // kappa_j; none while warming up or without budget
  // P(reject) for a score equal to the cutoff; 0 under the strict rule.
  double tie_probability = 0;
};

// The verdict on one drawn group with the numbers it rests on.
struct Decision {
  Verdict verdict = Verdict::kAdmit;
  Reason reason = Reason::kUnfiltered;
  double waiting = 0;     // K_wait
  double generation = 0;  // K_gen
  double weight = 1;      // what generation staleness counted for
  double score = 0;
  std::optional<double> prefix_score;
  std::optional<double> percentile;  // q; none where no weight was computed from it
};

}  // namespace pace

#endif  // PACE_CORE_DECISION_H_
