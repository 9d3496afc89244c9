// A list as `key=value` writes it: [my data/a.jsonl, "b,c.jsonl"], or the same
// without the outer brackets.
//
// Commas separate items. An item is plain text, without the spaces around it, or
// text in single or double quotes, as in YAML. Plain text may hold spaces,
// quotes after its first character, and brackets or braces in pairs; commas
// inside such a pair belong to the item.
//
// Thread-safety: a function of its argument.
#ifndef PACE_CONFIG_TEXT_LIST_H_
#define PACE_CONFIG_TEXT_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pace {

// Empty text and [] are the empty list. An error says which rule is broken,
// without naming the key.
Result<std::vector<std::string>> ParseTextList(std::string_view text);

}  // namespace pace

#endif  // PACE_CONFIG_TEXT_LIST_H_
