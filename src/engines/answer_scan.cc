#include "engines/answer_scan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/concat.h"
#include "core/printable.h"

namespace pace::answer {
namespace {

constexpr size_t kMaxErrorBytes = 300;

// The first text under one of these keys, however deep the objects around it are.
bool FindMessage(JsonScanner& scan, std::string& found, int depth) {
  return ForKeys(scan, [&](const std::string& key) {
    const bool named = key == "message" || key == "error" || key == "detail";
    if (!named || !found.empty()) return false;
    if (scan.NextKind() == JsonScanner::Kind::kText) return scan.Text(found);
    if (scan.NextKind() == JsonScanner::Kind::kObject && depth < 4) {
      return FindMessage(scan, found, depth + 1);
    }
    return false;
  });
}

}  // namespace

Result<std::string> TextOf(std::string_view body, std::string_view wanted) {
  JsonScanner scan(body);
  std::string text;
  ForKeys(scan, [&](const std::string& key) {
    if (key != wanted || scan.NextKind() != JsonScanner::Kind::kText) return false;
    return scan.Text(text);
  });
  scan.End();
  if (!scan.ok()) return scan.status();
  return text;
}

std::string ErrorOf(std::string_view body) {
  JsonScanner scan(body);
  std::string found;
  if (!FindMessage(scan, found, 0) || found.empty()) found = body;
  const size_t line = std::min(found.find('\n'), kMaxErrorBytes);
  if (line < found.size()) found.resize(line);
  return found.empty() ? "no reason given" : Printable(found);
}

double CounterOf(std::string_view text, std::string_view name) {
  double sum = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    const char next = line[name.size()];
    // NAME{labels} VALUE or NAME VALUE; a label may hold spaces, a value does not.
    if (next != '{' && next != ' ') continue;
    const std::string_view value = line.substr(line.rfind(' ') + 1);
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (whole && std::isfinite(number) && number > 0) sum += number;
  }
  return sum;
}

FirstTokens FirstTokensOf(std::string_view text, std::string_view name) {
  const double count = CounterOf(text, Concat(name, "_count"));
  const double time = CounterOf(text, Concat(name, "_sum"));
  if (count > static_cast<double>(kMaxCount) || !std::isfinite(time)) return {};
  return {static_cast<int64_t>(count), Seconds(time)};
}

}  // namespace pace::answer
