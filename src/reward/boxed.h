// Finding \boxed{...} in a response.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_BOXED_H_
#define PACE_REWARD_BOXED_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pace {

// The content of the last "\boxed{", up to the brace that closes it. None where
// there is no such box or its brace is never closed, even if an earlier one is:
// the last box counts.
std::optional<std::string_view> LastBoxed(std::string_view text);

// The position of the brace that closes the one at `open`; npos where none
// does. Escapes are not looked at. REQUIRES: text[open] == '{'
size_t ClosingBrace(std::string_view text, size_t open);

// The contents of the boxes of a text (\boxed and \fbox), joined by commas, or the
// text itself where it has none. With `last_only`, only the last one and those
// before it that belong to the same answer: next to it, or near it with a comma or
// an "and" between. A last box that is never closed holds the rest of the text.
std::string JoinBoxes(std::string_view text, bool last_only);

}  // namespace pace

#endif  // PACE_REWARD_BOXED_H_
