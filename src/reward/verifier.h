// Verify: the reward of one response to one problem.
//
// A mode defines how an answer is found in the response and when it equals the problem's answer.
// Verifiers read the two texts alone, use no Python and take bounded time on any input.
//
//   Result<VerifierMode> mode = VerifierModeFromName("dapo");
//   const Verification seen = Verify(*mode, "... Answer: 34", "34");
//   // seen.correct == true, seen.score == 1, seen.extracted == "34"
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_VERIFIER_H_
#define PACE_REWARD_VERIFIER_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/status.h"
#include "reward/verification.h"

namespace pace {

enum class VerifierMode {
  kDapo,         // the last "Answer:" line, normalised, as verl compares it
  kDapoStrict,   // the last \boxed{...}, letter for letter, as verl compares it
  kDapoInteger,  // kDapo, and integers by their value: "-1,234" is "-1234"
  kMath,         // the last \boxed{...} under the normaliser of the MATH dataset
  kEquivalence,  // mathematical equivalence: "\frac12", "0.5" and "x = 1/2" agree
  kGsm8k,        // the number after "####", else the last number
  kExact,        // the whole response, white space around it aside
  kRetool,       // kDapoStrict with a score that grows with the turns taken
  kOwn,          // a function of the user's (src/judge): Verify knows nothing of it
};

// "dapo", "dapo-strict", "dapo-int", "math", "equiv", "gsm8k", "exact", "retool".
Result<VerifierMode> VerifierModeFromName(std::string_view name);
std::string_view Name(VerifierMode mode);

// What a ReTool response without any tool call counts: question and answer.
inline constexpr int64_t kDefaultNumTurns = 2;

// `answer` is the problem's answer, `num_turns` the turns of the conversation
// (used by kRetool alone).
Verification Verify(VerifierMode mode, std::string_view response, std::string_view answer,
                    int64_t num_turns = kDefaultNumTurns);

// The verifier for a value of verl's `data_source` (verl/utils/reward_score):
//
//   openai/gsm8k                                        gsm8k
//   lighteval/MATH, DigitalLearningGmbH/MATH-lighteval,
//   HuggingFaceH4/MATH-500                              math
//   math_dapo, math, math_dapo_reasoning, aime*         dapo
//   numina_*                                            equiv (verl: PRIME's rules)
//
// None where we have no verifier for the source.
std::optional<VerifierMode> VerifierOfDataSource(std::string_view data_source);

// The penalty of responses that come close to the length limit (DAPO's soft
// overlong punishment).
struct OverlongOptions {
  // Longest response, in tokens.
  int64_t max_length = 8192;
  // The last tokens before the limit, over which the penalty grows from 0 to
  // `factor`. Larger: shorter responses are pressed already.
  int64_t buffer_length = 4096;
  double factor = 1;

  [[nodiscard]] Status Validate() const;
};

// What to add to the reward of a response of `length` tokens: 0 up to
// max_length - buffer_length, then falling linearly, by `factor` over the
// buffer; it keeps falling beyond the limit. REQUIRES: options are valid
double OverlongPenalty(int64_t length, const OverlongOptions& options);

}  // namespace pace

#endif  // PACE_REWARD_VERIFIER_H_
