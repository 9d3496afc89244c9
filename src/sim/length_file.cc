#include <algorithm>
#include <charconv>

#include "core/json_scanner.h"
#include "core/line_reader.h"
#include "sim/workload.h"

namespace pace {
namespace {

constexpr int64_t kLargestLength = 10000000;

Result<int64_t> ParseLength(std::string_view text) {
  int64_t length = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, length);
  if (error != std::errc() || stop != end) {
    if (!text.starts_with('{')) {
      return InvalidArgument("must be an integer or {\"length\": integer}");
    }
    bool found = false;
    JsonScanner scan(text);
    scan.EnterObject();
    while (scan.NextKey()) {
      if (scan.key() != "length" || found) {
        scan.FailUnknownKey();
        break;
      }
      found = true;
      scan.Integer(1, kLargestLength, "", length);
    }
    scan.End();
    if (!scan.ok()) return scan.status();
    if (!found) return InvalidArgument("length: is missing");
  }
  if (length < 1 || length > kLargestLength) {
    return InvalidArgument("length = ", length, ": must be between 1 and ", kLargestLength);
  }
  return length;
}

}  // namespace

Result<std::vector<int64_t>> ParseLengths(std::string_view text, const std::string& name) {
  std::vector<int64_t> lengths;
  PACE_RETURN_IF_ERROR(ForEachLine(text, [&](std::string_view line, int64_t number) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return Status::Ok();
    const size_t last = line.find_last_not_of(" \t\r");
    const auto length = ParseLength(line.substr(first, last - first + 1));
    if (length.ok()) lengths.push_back(*length);
    return length.status().At(Concat(name, ":", number));
  }));
  if (lengths.empty()) return InvalidArgument(name, ": must hold at least one length");
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace pace
