// The DAPO verifier, to the bit as verl has it.
//
// Both forms look at the end of the response alone and give 1 or -1. Characters
// are code points; space, digits and letter case are Python's.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_DAPO_H_
#define PACE_REWARD_DAPO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reward/verification.h"

namespace pace {

// Of the last 300 characters the last "Answer:" (in any case, space before and
// after the colon) and the rest of its line; "[INVALID]" where there is none.
// It is right when it equals the answer after NormalizeDapo on both.
Verification VerifyDapo(std::string_view response, std::string_view answer);

// Of the last 100 characters the last \boxed{...}, compared letter for letter.
Verification VerifyDapoStrict(std::string_view response, std::string_view answer);

// The text after the last "Answer:" of the last 300 characters, or
// "[INVALID]".
std::string ExtractDapo(std::string_view response);

// Keeps what follows the last "=", applies the list of substitutions, deletes
// units and LaTeX spacing wherever they occur (inside words too), keeps the
// first $...$ of a line, unwraps \text, \textbf, \overline and \boxed, puts
// braces after \frac and \sqrt, and drops commas where only digits remain.
std::string NormalizeDapo(std::string_view text);

// VerifyDapo with integers compared by value: where both normalised sides are integers, with a
// sign, leading zeros or commas between groups of three, "-1,234" is "-1234", "034" is "34" and
// "+5" is "5".
Verification VerifyDapoInteger(std::string_view response, std::string_view answer);

// The integer that the whole text writes, in one form: "-" or nothing, then
// digits without leading zeros; "0" has no sign. None for any other text. A
// sign is "+", "-" or U+2212; digits may be of any script.
std::optional<std::string> CanonicalInteger(std::string_view text);

// ReTool's reward: the strict box, with a smaller penalty for responses that use tools.
// 1 where VerifyDapoStrict finds the answer, else min(-0.6, -1 + 0.05 (T - 2))
// with T = num_turns: at T = 10 the penalty stops shrinking. A response
// without a box extracts "".
Verification VerifyRetool(std::string_view response, std::string_view answer, int64_t num_turns);

}  // namespace pace

#endif  // PACE_REWARD_DAPO_H_
