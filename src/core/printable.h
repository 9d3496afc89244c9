// Printable: foreign text made fit for one line of an error message.
#ifndef PACE_CORE_PRINTABLE_H_
#define PACE_CORE_PRINTABLE_H_

#include <string>
#include <string_view>

namespace pace {

// Control characters and bytes outside ASCII become '?'; what is longer than 60
// bytes ends in "...".
std::string Printable(std::string_view text);

}  // namespace pace

#endif  // PACE_CORE_PRINTABLE_H_
