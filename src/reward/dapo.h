// The DAPO verifier, to the bit as verl has it.
//
// Both forms look at the end of the response alone and give 1 or -1. Characters
// are code points; space, digits and letter case are Python's.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_DAPO_H_
#define PACE_REWARD_DAPO_H_

#include <string>
#include <string_view>

#include "reward/verification.h"

namespace pace {

// Of the last 300 characters the last "Answer:" (in any case, space before and
// behind the colon) and the rest of its line; "[INVALID]" where there is none.
// It is right when it equals the answer after NormalizeDapo on both.
Verification VerifyDapo(std::string_view response, std::string_view answer);

// Of the last 100 characters the last \boxed{...}, compared letter for letter.
Verification VerifyDapoStrict(std::string_view response, std::string_view answer);

// The text behind the last "Answer:" of the last 300 characters, or
// "[INVALID]".
std::string ExtractDapo(std::string_view response);

// Keeps what follows the last "=", applies the list of substitutions, deletes
// units and LaTeX spacing wherever they occur (inside words too), keeps the
// first $...$ of a line, unwraps \text, \textbf, \overline and \boxed, puts
// braces behind \frac and \sqrt, and drops commas where only digits remain.
std::string NormalizeDapo(std::string_view text);

}  // namespace pace

#endif  // PACE_REWARD_DAPO_H_
