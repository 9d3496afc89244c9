#include "config/text_list.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pace {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<char> Unescaped(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    default:
      return std::nullopt;
  }
}

class ListReader {
 public:
  explicit ListReader(std::string_view text) : rest_(text) {}

  Result<std::vector<std::string>> Read() {
    std::vector<std::string> items;
    while (true) {
      rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size()));
      const bool quoted = rest_.starts_with('"') || rest_.starts_with('\'');
      PACE_ASSIGN_OR_RETURN(std::string item, quoted ? QuotedItem() : PlainItem());
      items.push_back(std::move(item));
      if (rest_.empty()) return items;
      rest_.remove_prefix(1);  // the comma
    }
  }

 private:
  Result<std::string> QuotedItem() {
    const char quote = rest_.front();
    std::string out;
    size_t i = 1;
    for (;; ++i) {
      if (i >= rest_.size()) return InvalidArgument("a quote is not closed");
      if (rest_[i] == quote) {
        // Two single quotes stand for one.
        if (quote == '"' || !rest_.substr(i + 1).starts_with('\'')) break;
        ++i;
      } else if (quote == '"' && rest_[i] == '\\') {
        const auto c = i + 1 < rest_.size() ? Unescaped(rest_[i + 1]) : std::nullopt;
        if (!c.has_value())
          return InvalidArgument("in double quotes \\ must precede \" \\ / n t r");
        out += *c;
        ++i;
        continue;
      }
      out += rest_[i];
    }
    rest_.remove_prefix(i + 1);
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size()));
    if (!rest_.empty() && rest_.front() != ',') {
      return InvalidArgument("a comma must follow an item in quotes");
    }
    return out;
  }

  Result<std::string> PlainItem() {
    std::string open;  // brackets that are not closed yet
    size_t i = 0;
    for (; i < rest_.size() && (rest_[i] != ',' || !open.empty()); ++i) {
      const char c = rest_[i];
      if (c == '[' || c == '{') open += c == '[' ? ']' : '}';
      if (c != ']' && c != '}') continue;
      if (open.empty() || open.back() != c) return Unpaired(c);
      open.pop_back();
    }
    if (!open.empty()) return Unpaired(open.back() == ']' ? '[' : '{');
    const std::string_view item = Trimmed(rest_.substr(0, i));
    if (item.empty()) return InvalidArgument("an item is empty (write \"\" for empty text)");
    std::string out(item);
    rest_.remove_prefix(i);
    return out;
  }

  static Status Unpaired(char bracket) {
    return InvalidArgument("a ", std::string(1, bracket),
                           " has no partner (put the item in quotes)");
  }

  std::string_view rest_;  // begins at an item, ends with the list
};

}  // namespace

Result<std::vector<std::string>> ParseTextList(std::string_view text) {
  text = Trimmed(text);
  if (text.starts_with('[') && text.ends_with(']')) {
    text = Trimmed(text.substr(1, text.size() - 2));
  }
  if (text.empty()) return std::vector<std::string>();
  return ListReader(text).Read();
}

}  // namespace pace
