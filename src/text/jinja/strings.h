// Python's string functions, for methods and filters.
#ifndef PACE_TEXT_JINJA_STRINGS_H_
#define PACE_TEXT_JINJA_STRINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pace::jinja {

// Without the given characters (white space, if none are given) at the ends.
std::string Strip(const std::string& text, const std::optional<std::string>& characters, bool left,
                  bool right);
// At most `max_splits` cuts if that is not negative; at space without `separator`.
std::vector<std::string> SplitText(const std::string& text,
                                   const std::optional<std::string>& separator, int64_t max_splits,
                                   bool from_right);
std::vector<std::string> SplitLines(const std::string& text);
// All of them, or the first `max_count` if that is not negative.
std::string ReplaceAll(const std::string& text, const std::string& from, const std::string& to,
                       int64_t max_count);

}  // namespace pace::jinja

#endif  // PACE_TEXT_JINJA_STRINGS_H_
