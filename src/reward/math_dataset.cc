#include "reward/math_dataset.h"

#include <utility>
#include <vector>

#include "core/utf8.h"
#include "reward/boxed.h"
#include "reward/python_characters.h"

namespace pace {
namespace {

constexpr size_t kNone = std::string_view::npos;

std::vector<std::string_view> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  size_t at = 0;
  for (size_t found = FindText(text, separator); found != kNone;
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
         text.find_first_not_of("0123456789") == kNone;
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
  if (bare != kNone) {
    const std::string_view rest = response.substr(bare + kBare.size());
    return rest.substr(0, rest.find('$'));
  }
  std::string_view command = "\\boxed{";
  size_t begin = response.rfind(command);
  if (begin == kNone) {
    command = "\\fbox{";
    begin = response.rfind(command);
  }
  if (begin == kNone) return std::nullopt;
  const size_t open = begin + command.size() - 1;
  const size_t close = ClosingBrace(response, open);
  if (close == kNone) return std::nullopt;
  return response.substr(open + 1, close - open - 1);
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
  const bool has_box = response.find("\\boxed") != kNone || response.find("\\fbox") != kNone;
  const std::optional<std::string_view> found =
      has_box ? BoxedAnswer(response) : std::optional<std::string_view>(response);
  if (!found.has_value()) return ZeroOrOne(false, std::nullopt);
  return ZeroOrOne(IsMathEquivalent(*found, answer), std::string(StripSpace(*found)));
}

}  // namespace pace
