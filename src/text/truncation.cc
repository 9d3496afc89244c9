#include "text/truncation.h"

#include "core/concat.h"
#include "core/utf8.h"

namespace pace {
namespace {

// The last `count` code points; all of them for 0, as a Python slice of -0.
std::string_view LastOf(std::string_view text, size_t length, size_t count) {
  return count == 0 ? text : text.substr(OffsetOfCodePoint(text, length - count));
}

std::string_view FirstOf(std::string_view text, size_t count) {
  return text.substr(0, OffsetOfCodePoint(text, count));
}

}  // namespace

std::optional<TruncationSide> TruncationSideFromName(std::string_view name) {
  if (name == "left") return TruncationSide::kLeft;
  if (name == "right") return TruncationSide::kRight;
  if (name == "middle") return TruncationSide::kMiddle;
  return std::nullopt;
}

std::string TruncateToolResponse(std::string_view text, int64_t max_length, TruncationSide side) {
  const size_t length = CountCodePoints(text);
  const auto bound = static_cast<size_t>(max_length);
  if (length <= bound) return std::string(text);
  switch (side) {
    case TruncationSide::kLeft:
      return Concat("(truncated)...", LastOf(text, length, bound));
    case TruncationSide::kRight:
      return Concat(FirstOf(text, bound), "...(truncated)");
    case TruncationSide::kMiddle:
      break;
  }
  const size_t half = bound / 2;
  return Concat(FirstOf(text, half), "...(truncated)...", LastOf(text, length, half));
}

}  // namespace pace
