#include "reward/math_dataset.h"

#include <utility>
#include <vector>

#include "core/utf8.h"
#include "reward/boxed.h"
#include "reward/python_characters.h"

namespace pace {
namespace {

std::vector<std::string_view> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  size_t at = 0;
  for (size_t found = FindText(text, separator); found != kNowhere;
       found = FindText(text, separator, at)) {
    parts.push_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

// Braces around what follows every \sqrt.
std::optional<std::string> BraceRoots(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, "\\sqrt");
  std::string out(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].empty()) return std::nullopt;
    out += "\\sqrt";
    if (parts[i][0] == '{') {
      out += parts[i];
      continue;
    }
    const size_t first = CharacterBytes(parts[i], 0);
    out += '{';
    out += parts[i].substr(0, first);
    out += '}';
    out += parts[i].substr(first);
  }
  return out;
}

// \frac12 and \frac1{2} -> \frac{1}{2}. A single character after a \frac
// leaves the whole text as it is.
std::optional<std::string> BraceFractions(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, "\\frac");
  std::string out(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.empty()) return std::nullopt;
    out += "\\frac";
    if (part[0] == '{') {
      out += part;
      continue;
    }
    const size_t first = CharacterBytes(part, 0);
    if (first == part.size()) return std::string(text);
    const size_t second = CharacterBytes(part, first);
    out += '{';
    out += part.substr(0, first);
    out += '}';
    if (part[first] == '{') {
      out += part.substr(first);
      continue;
    }
    out += '{';
    out += part.substr(first, second);
    out += '}';
    out += part.substr(first + second);
  }
  return out;
}

// As str(int(text)) would write it: "-12", never "+12", "012" or "-0". Python
// refuses to read integers of more than 4,300 digits.
bool IsPlainInteger(std::string_view text) {
  constexpr size_t kMaxDigits = 4300;
  if (text == "0") return true;
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && text.size() <= kMaxDigits && text[0] != '0' &&
         text.find_first_not_of("0123456789") == kNowhere;
}

std::string SlashToFraction(std::string text) {
  const std::vector<std::string_view> parts = Split(text, "/");
  if (parts.size() != 2 || !IsPlainInteger(parts[0]) || !IsPlainInteger(parts[1])) return text;
  std::string out = "\\frac{";
  out += parts[0];
  out += "}{";
  out += parts[1];
  out += '}';
  return out;
}

// "x=5" -> "5" where at most two characters stand before the only "=".
std::string DropShortLeftSide(std::string text) {
  const std::vector<std::string_view> parts = Split(text, "=");
  if (parts.size() != 2 || CountCodePoints(parts[0]) > 2) return text;
  return std::string(parts[1]);
}

// What the last box holds, as the dataset's scripts find it; none where the
// response has a box that they cannot read.
std::optional<std::string_view> BoxedAnswer(std::string_view response) {
  constexpr std::string_view kBare = "\\boxed ";
  const size_t bare = response.rfind(kBare);
  if (bare != kNowhere) {
    const std::string_view rest = response.substr(bare + kBare.size());
    return rest.substr(0, rest.find('$'));
  }
  std::string_view command = "\\boxed{";
  size_t begin = response.rfind(command);
  if (begin == kNowhere) {
    command = "\\fbox{";
    begin = response.rfind(command);
  }
  if (begin == kNowhere) return std::nullopt;
  const size_t open = begin + command.size() - 1;
  const size_t close = ClosingBrace(response, open);
  if (close == kNowhere) return std::nullopt;
  return response.substr(open + 1, close - open - 1);
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
  for (size_t found = text.rfind(kMarker); found != kNowhere;
       found = text.rfind(kMarker, found - 1)) {
    const size_t at = text.find_first_not_of(" \t\r\n", found + kMarker.size());
    if (at != kNowhere) {
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

std::optional<std::string> NormalizeMath(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kFirst[] = {
      {"\n", ""},     {"\\!", ""},     {"\\\\", "\\"},    {"tfrac", "frac"}, {"dfrac", "frac"},
      {"\\left", ""}, {"\\right", ""}, {"^{\\circ}", ""}, {"^\\circ", ""},   {"\\$", ""},
  };
  std::string out(text);
  for (const auto& [before, after] : kFirst) out = ReplaceAll(out, before, after);
  const std::vector<std::string_view> unit = Split(out, "\\text{ ");
  if (unit.size() > 2) return std::nullopt;
  out = std::string(unit[0]);
  static constexpr std::pair<std::string_view, std::string_view> kThen[] = {
      {"\\%", ""}, {"%", ""}, {" .", " 0."}, {"{.", "{0."}};
  for (const auto& [before, after] : kThen) out = ReplaceAll(out, before, after);
  if (out.empty()) return out;
  if (out[0] == '.') out = "0" + out;
  const std::optional<std::string> rooted = BraceRoots(DropShortLeftSide(std::move(out)));
  if (!rooted.has_value()) return std::nullopt;
  std::optional<std::string> braced = BraceFractions(ReplaceAll(*rooted, " ", ""));
  if (!braced.has_value()) return std::nullopt;
  if (*braced == "0.5") return "\\frac{1}{2}";
  return SlashToFraction(*std::move(braced));
}

bool IsMathEquivalent(std::string_view one, std::string_view other) {
  const std::optional<std::string> left = NormalizeMath(one);
  const std::optional<std::string> right = NormalizeMath(other);
  if (!left.has_value() || !right.has_value()) return one == other;
  return *left == *right;
}

Verification VerifyMath(std::string_view response, std::string_view answer) {
  const bool has_box = response.find("\\boxed") != kNowhere || response.find("\\fbox") != kNowhere;
  const std::optional<std::string_view> found =
      has_box ? BoxedAnswer(response) : std::optional<std::string_view>(response);
  if (!found.has_value()) return ZeroOrOne(false, std::nullopt);
  return ZeroOrOne(IsMathEquivalent(*found, answer), std::string(StripSpace(*found)));
}

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
