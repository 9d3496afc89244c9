#include "engines/answer_scan.h"

#include <algorithm>

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

}  // namespace pace::answer
