#include "reward/equivalence/math_spans.h"

#include <algorithm>

namespace pace::equiv {
namespace {

constexpr size_t kNone = std::string_view::npos;
// Longer environments are derivations, and are looked into for boxes.
constexpr size_t kMaxSpanBytes = 4096;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool IsEscaped(std::string_view text, size_t at) {
  return at > 0 && text[at - 1] == '\\';
}

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

bool StartsAt(std::string_view text, size_t at, std::string_view word) {
  return at <= text.size() && text.substr(at, word.size()) == word;
}

// After "and", "or" or a comma, with space around it.
size_t SkipJoint(std::string_view text, size_t at) {
  at = SkipSpace(text, at);
  const size_t behind_comma = at < text.size() && text[at] == ',' ? at + 1 : at;
  for (const std::string_view joint : {"and", "or"}) {
    if (StartsAt(text, behind_comma, joint)) return SkipSpace(text, behind_comma + joint.size());
  }
  return behind_comma == at ? kNone : SkipSpace(text, behind_comma);
}

// After -?digits, with a fraction after a point or a comma.
size_t SkipNumber(std::string_view text, size_t at) {
  if (at < text.size() && text[at] == '-') ++at;
  const size_t begin = at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  if (at == begin) return kNone;
  if (at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && IsDigit(text[at + 1])) {
    ++at;
    while (at < text.size() && IsDigit(text[at])) ++at;
  }
  return at;
}

std::vector<size_t> PlacesOf(std::string_view text, std::string_view sign) {
  std::vector<size_t> places;
  for (size_t at = text.find(sign); at != kNone; at = text.find(sign, at + 1)) {
    places.push_back(at);
  }
  return places;
}

// The first of `places` at or after `at`.
size_t NextOf(const std::vector<size_t>& places, size_t at) {
  const auto found = std::lower_bound(places.begin(), places.end(), at);
  return found == places.end() ? kNone : *found;
}

bool HoldsBox(std::string_view content) {
  constexpr std::string_view kCommand = "\\boxed{";
  const size_t begin = content.find(kCommand);
  if (begin == kNone) return false;
  const size_t inside = begin + kCommand.size();
  return inside < content.size() && content.find('}', inside + 1) != kNone;
}

}  // namespace

MathSpans::MathSpans(std::string_view text)
    : text_(text),
      dollars_(PlacesOf(text, "$$")),
      brackets_(PlacesOf(text, "\\]")),
      parentheses_(PlacesOf(text, "\\)")),
      lines_(PlacesOf(text, "\n")) {}

std::optional<MathSpan> MathSpans::MatchDisplay(size_t at) const {
  const bool dollars = StartsAt(text_, at, "$$");
  if (!dollars && !StartsAt(text_, at, "\\[")) return std::nullopt;
  if (IsEscaped(text_, at)) return std::nullopt;
  const size_t begin = at + 2;
  const size_t close = NextOf(dollars ? dollars_ : brackets_, begin + 1);
  if (close == kNone || close - begin > kMaxSpanBytes || IsEscaped(text_, close)) {
    return std::nullopt;
  }
  return MathSpan{text_.substr(begin, close - begin), false, close + 2};
}

std::optional<MathSpan> MathSpans::MatchInline(size_t at) const {
  if (IsEscaped(text_, at)) return std::nullopt;
  if (text_[at] == '$') {
    if (at > 0 && IsDigit(text_[at - 1])) return std::nullopt;
    for (size_t close = at + 1; close < text_.size() && text_[close] != '\n'; ++close) {
      if (text_[close] != '$' || IsEscaped(text_, close)) continue;
      if (close == at + 1) return std::nullopt;
      return MathSpan{text_.substr(at + 1, close - at - 1), false, close + 1};
    }
    return std::nullopt;
  }
  if (!StartsAt(text_, at, "\\(")) return std::nullopt;
  const size_t begin = at + 2;
  const size_t close = NextOf(parentheses_, begin);
  if (close == kNone || close == begin || close - begin > kMaxSpanBytes ||
      IsEscaped(text_, close) || NextOf(lines_, begin) < close) {
    return std::nullopt;
  }
  return MathSpan{text_.substr(begin, close - begin), false, close + 2};
}

std::optional<MathSpan> MathSpans::MatchBrackets(size_t at) const {
  if (!IsSpace(text_[at]) || !StartsAt(text_, at + 1, "[")) return std::nullopt;
  const size_t begin = at + 2;
  const size_t close = text_.find_first_of("[]\n", begin);
  if (close == kNone || close == begin || text_[close] != ']') return std::nullopt;
  if (close + 1 >= text_.size() || !IsSpace(text_[close + 1])) return std::nullopt;
  return MathSpan{text_.substr(begin, close - begin), false, close + 2};
}

std::optional<MathSpan> MathSpans::MatchFraction(size_t at) const {
  size_t end = text_[at] == '-' ? at + 1 : at;
  if (!StartsAt(text_, end, "\\frac")) return std::nullopt;
  end += 5;
  for (int i = 0; i < 2; ++i) {
    if (!StartsAt(text_, end, "{")) return std::nullopt;
    end = SkipNumber(text_, end + 1);
    if (end == kNone || !StartsAt(text_, end, "}")) return std::nullopt;
    ++end;
  }
  return MathSpan{text_.substr(at, end - at), false, end};
}

void MathSpans::TakePercent(MathSpan& span) const {
  span.end = SkipSpace(text_, span.end);
  for (const std::string_view sign :
       {"\\%", "%", "percentage", "Percentage", "percent", "Percent", "pct", "Pct"}) {
    if (!StartsAt(text_, span.end, sign)) continue;
    span.has_percent = true;
    span.end += sign.size();
    return;
  }
}

std::optional<MathSpan> MathSpans::Match(size_t at, bool boxed) const {
  std::optional<MathSpan> span = MatchDisplay(at);
  if (!span.has_value()) span = MatchInline(at);
  if (!span.has_value()) span = MatchBrackets(at);
  if (!span.has_value() && !boxed) span = MatchFraction(at);
  if (!span.has_value() || (boxed && !HoldsBox(span->content))) return std::nullopt;
  TakePercent(*span);
  return span;
}

std::optional<MathSpanList> MathSpans::MatchList(size_t at, bool boxed) const {
  constexpr size_t kMaxSpans = 6;
  const char c = text_[at];
  if (c != '$' && c != '\\' && c != '-' && !IsSpace(c)) return std::nullopt;
  std::optional<MathSpan> span = Match(at, boxed);
  if (!span.has_value()) return std::nullopt;
  MathSpanList list;
  while (span.has_value()) {
    list.spans.push_back(*span);
    list.end = span->end;
    const size_t next = SkipJoint(text_, list.end);
    if (list.spans.size() == kMaxSpans || next == kNone || next >= text_.size()) break;
    span = Match(next, boxed);
  }
  return list;
}

}  // namespace pace::equiv
