#include "task/json_values.h"

#include <cmath>
#include <utility>

namespace pace {
namespace {

using Kind = JsonScanner::Kind;

// Whole numbers up to here are exact in a double.
constexpr double kLargestNumber = 9007199254740992.0;

void ScanText(JsonScanner& scan, std::optional<std::string>& out) {
  if (scan.NextKind() != Kind::kText) {
    scan.Skip();
    return;
  }
  std::string text;
  if (scan.Text(text)) out = std::move(text);
}

// One part of a message's content; parts that are no text are an error.
void ScanPart(JsonScanner& scan, std::string& content) {
  std::optional<std::string> text;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "text") {
      ScanText(scan, text);
    } else {
      scan.Skip();
    }
  }
  if (!scan.ok()) return;
  if (!text.has_value()) {
    scan.Fail("must be a part with 'text' (images and sound are not supported)");
    return;
  }
  content += *text;
}

void ScanContent(JsonScanner& scan, std::optional<std::string>& out) {
  if (scan.NextKind() != Kind::kArray) return ScanText(scan, out);
  std::string& content = out.emplace();
  scan.EnterArray();
  while (scan.NextItem()) ScanPart(scan, content);
}

void ScanMessage(JsonScanner& scan, ChatMessage& message) {
  std::optional<std::string> role, content;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "role") {
      ScanText(scan, role);
    } else if (scan.key() == "content") {
      ScanContent(scan, content);
    } else {
      scan.Skip();
    }
  }
  if (!scan.ok()) return;
  if (!role.has_value() || !content.has_value()) {
    scan.Fail("needs 'role' and 'content', both text");
    return;
  }
  message = {.role = std::move(*role), .content = std::move(*content)};
}

}  // namespace

void ScanTextOrNumber(JsonScanner& scan, std::optional<std::string>& out) {
  if (scan.NextKind() != Kind::kNumber) return ScanText(scan, out);
  double number = 0;
  if (!scan.Real(-kLargestNumber, kLargestNumber, "write longer numbers as text", number)) return;
  const bool whole = std::floor(number) == number;
  out = whole ? Concat(static_cast<int64_t>(number)) : Concat(number);
}

void ScanMessages(JsonScanner& scan, std::vector<ChatMessage>& out) {
  scan.EnterArray();
  while (scan.NextItem()) ScanMessage(scan, out.emplace_back());
}

void ScanPrompt(JsonScanner& scan, std::optional<Prompt>& out) {
  if (scan.NextKind() == Kind::kArray) {
    std::vector<ChatMessage> messages;
    ScanMessages(scan, messages);
    if (scan.ok()) out = std::move(messages);
    return;
  }
  std::optional<std::string> text;
  ScanText(scan, text);
  if (text.has_value()) out = std::move(*text);
}

}  // namespace pace
