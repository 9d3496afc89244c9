#include "reward/gsm8k.h"

#include <utility>

namespace pace {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

struct WrittenNumber {
  std::string canonical;
  size_t end;
};

std::string Canonical(bool negative, std::string whole, std::string fraction) {
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (whole.empty()) whole = "0";
  if (!fraction.empty()) whole += "." + fraction;
  return negative && whole != "0" ? "-" + whole : whole;
}

// The number that begins at `at`: -?[$]?digits with commas, one point.
std::optional<WrittenNumber> NumberAt(std::string_view text, size_t at) {
  bool negative = false;
  if (at < text.size() && text[at] == '-') {
    negative = true;
    ++at;
  }
  if (at < text.size() && text[at] == '$') ++at;
  std::string whole;
  std::string fraction;
  bool has_point = false;
  for (; at < text.size(); ++at) {
    const bool digit_follows = at + 1 < text.size() && IsDigit(text[at + 1]);
    if (IsDigit(text[at])) {
      (has_point ? fraction : whole) += text[at];
    } else if (text[at] == '.' && !has_point && digit_follows) {
      has_point = true;
    } else if (text[at] != ',' || has_point || whole.empty() || !digit_follows) {
      break;
    }
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  return WrittenNumber{Canonical(negative, std::move(whole), std::move(fraction)), at};
}

std::optional<std::string> NumberBehindMarker(std::string_view text) {
  constexpr std::string_view kMarker = "####";
  for (size_t found = text.rfind(kMarker); found != kNone; found = text.rfind(kMarker, found - 1)) {
    const size_t at = text.find_first_not_of(" \t\r\n", found + kMarker.size());
    if (at != kNone) {
      const std::optional<WrittenNumber> number = NumberAt(text, at);
      if (number.has_value()) return number->canonical;
    }
    if (found == 0) break;
  }
  return std::nullopt;
}

std::optional<std::string> LastNumber(std::string_view text) {
  std::optional<std::string> last;
  for (size_t at = 0; at < text.size();) {
    // A minus directly after a digit or a letter joins, it is no sign.
    const bool joined =
        text[at] == '-' && at > 0 && (IsDigit(text[at - 1]) || (text[at - 1] | 32) >= 'a');
    const std::optional<WrittenNumber> number = joined ? std::nullopt : NumberAt(text, at);
    if (number.has_value()) {
      last = number->canonical;
      at = number->end;
    } else {
      ++at;
    }
  }
  return last;
}

}  // namespace

std::optional<std::string> ExtractGsm8k(std::string_view text) {
  std::optional<std::string> marked = NumberBehindMarker(text);
  return marked.has_value() ? marked : LastNumber(text);
}

Verification VerifyGsm8k(std::string_view response, std::string_view answer) {
  std::optional<std::string> ours = ExtractGsm8k(response);
  const std::optional<std::string> right = ExtractGsm8k(answer);
  const bool correct = ours.has_value() && right.has_value() && *ours == *right;
  return ZeroOrOne(correct, std::move(ours));
}

}  // namespace pace
