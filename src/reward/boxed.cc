#include "reward/boxed.h"

#include <array>
#include <cstdint>
#include <vector>

#include "core/utf8.h"
#include "reward/python_characters.h"

namespace pace {
namespace {

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != kNowhere; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsAsciiLetter(text[at - 1])) &&
        (end == text.size() || !IsAsciiLetter(text[end]))) {
      return true;
    }
  }
  return false;
}

// Whether two boxes with `between` between them make one answer.
bool BelongTogether(std::string_view between, bool same_content) {
  constexpr size_t kNear = 10;
  constexpr size_t kFar = 70;
  const size_t distance = CountCodePoints(between);
  if (distance < kNear) return true;
  return !same_content && distance < kFar &&
         (between.find_first_of(",;") != kNowhere || HasWord(between, "and") ||
          HasWord(between, "or"));
}

struct BoxCommand {
  size_t begin = kNowhere;
  size_t end = kNowhere;
};

// The \boxed and \fbox of a text, from the last.
class BoxCommands {
 public:
  explicit BoxCommands(std::string_view text) : text_(text) {
    for (size_t i = 0; i < kNames.size(); ++i) last_[i] = text.rfind(kNames[i]);
  }

  // The last one that ends at or before `limit`, which may not grow from call to
  // call; each name is looked for again only where its last place is passed.
  BoxCommand LastBefore(size_t limit) {
    BoxCommand last;
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (last_[i] != kNowhere && last_[i] + kNames[i].size() > limit) {
        last_[i] = text_.substr(0, limit).rfind(kNames[i]);
      }
      const bool later = last_[i] != kNowhere && (last.begin == kNowhere || last_[i] > last.begin);
      if (later) last = {last_[i], last_[i] + kNames[i].size()};
    }
    return last;
  }

 private:
  static constexpr std::array<std::string_view, 2> kNames = {"\\boxed", "\\fbox"};

  std::string_view text_;
  std::array<size_t, 2> last_;
};

}  // namespace

size_t ClosingBrace(std::string_view text, size_t open) {
  int64_t depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

std::optional<std::string_view> LastBoxed(std::string_view text) {
  constexpr std::string_view kCommand = "\\boxed{";
  const size_t begin = text.rfind(kCommand);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t inside = begin + kCommand.size();
  const size_t close = ClosingBrace(text, inside - 1);
  if (close == std::string_view::npos) return std::nullopt;
  return text.substr(inside, close - inside);
}

std::string JoinBoxes(std::string_view text, bool last_only) {
  std::vector<std::string_view> boxes;  // from the last
  BoxCommands commands(text);
  size_t limit = text.size();
  while (true) {
    const BoxCommand command = commands.LastBefore(limit);
    if (command.begin == kNowhere) break;
    const size_t open = text.find_first_not_of(" \t\r\n", command.end);
    if (open == kNowhere || open >= limit) break;
    const std::string_view reachable = text.substr(0, limit);
    const size_t close = text[open] == '{' ? ClosingBrace(reachable, open) : kNowhere;
    if (close == kNowhere) {
      if (boxes.empty()) boxes.push_back(text.substr(open));
      break;
    }
    const std::string_view content = StripSpace(text.substr(open + 1, close - open - 1));
    const bool same_content = !boxes.empty() && boxes.back() == content;
    if (last_only && !boxes.empty() &&
        !BelongTogether(text.substr(close + 1, limit - close - 1), same_content)) {
      break;
    }
    if (!same_content) boxes.push_back(content);
    limit = command.begin;
  }
  if (boxes.empty()) return std::string(text);
  std::string joined;
  for (size_t i = boxes.size(); i-- > 0;) {
    joined += boxes[i];
    if (i > 0) joined += ',';
  }
  return joined;
}

}  // namespace pace
