// An answer's LaTeX, tidied before it is read.
//
// Takes answers out of their boxes; drops dollar signs, quotes, spacing, units
// at the end; writes "and" and "or" as commas, "percent" as "%", "infinity" as
// \infty; halves doubled backslashes before commands.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_EQUIVALENCE_ANSWER_TEXT_H_
#define PACE_REWARD_EQUIVALENCE_ANSWER_TEXT_H_

#include <string>
#include <string_view>

namespace pace::equiv {

// `last_box_only` as in JoinBoxes. What is too long to be read as mathematics is
// only taken out of its boxes.
std::string TidyAnswer(std::string_view latex, bool last_box_only);

// What follows the last "=", where the text has more than one and no list:
// "x = 2 + 3 = 5" ends in "5". The whole text otherwise.
std::string_view BehindLastEqual(std::string_view text);

// Lower case, out of \text{...}, without space and punctuation at either end: for
// answers that are words.
std::string PlainWords(std::string_view text);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_ANSWER_TEXT_H_
