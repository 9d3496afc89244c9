// Truncation of a tool's response, counted in code points.
//
// A text up to the bound is unchanged. Of a longer one `max_length` code points
// are kept, and a marker replaces the others; it is not
// counted. With half or all of the bound 0, verl (whose rule this is) keeps the
// whole text after the marker, and so does this.
#ifndef PACE_TEXT_TRUNCATION_H_
#define PACE_TEXT_TRUNCATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pace {

enum class TruncationSide {
  kLeft,    // cut the beginning
  kRight,   // cut the end
  kMiddle,  // keep half of the bound at either end
};

// "left", "right", "middle".
std::optional<TruncationSide> TruncationSideFromName(std::string_view name);

// REQUIRES: max_length >= 0
std::string TruncateToolResponse(std::string_view text, int64_t max_length, TruncationSide side);

}  // namespace pace

#endif  // PACE_TEXT_TRUNCATION_H_
