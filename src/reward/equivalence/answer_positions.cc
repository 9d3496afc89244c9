#include "reward/equivalence/answer_positions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "reward/python_characters.h"

namespace pace::equiv {
namespace {

// Longer environments are derivations, and are looked into for boxes.
constexpr size_t kMaxSpanBytes = 4096;

bool IsEscaped(std::string_view text, size_t at) {
  return at > 0 && text[at - 1] == '\\';
}

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsAsciiSpace(text[at])) ++at;
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
  return behind_comma == at ? kNowhere : SkipSpace(text, behind_comma);
}

// After -?digits, with a fraction after a point or a comma.
size_t SkipNumber(std::string_view text, size_t at) {
  if (at < text.size() && text[at] == '-') ++at;
  const size_t begin = at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  if (at == begin) return kNowhere;
  if (at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && IsDigit(text[at + 1])) {
    ++at;
    while (at < text.size() && IsDigit(text[at])) ++at;
  }
  return at;
}

std::vector<size_t> PlacesOf(std::string_view text, std::string_view sign) {
  std::vector<size_t> places;
  for (size_t at = text.find(sign); at != kNowhere; at = text.find(sign, at + 1)) {
    places.push_back(at);
  }
  return places;
}

// The first of `places` at or after `at`.
size_t NextOf(const std::vector<size_t>& places, size_t at) {
  const auto found = std::lower_bound(places.begin(), places.end(), at);
  return found == places.end() ? kNowhere : *found;
}

// Two letters in a row that are no command's.
bool HoldsWord(std::string_view content) {
  const auto is_letter = [&](size_t at) { return IsAsciiLetter(content[at]); };
  for (size_t at = 0; at + 1 < content.size(); ++at) {
    if (content[at] == '\\') {
      while (at + 1 < content.size() && is_letter(at + 1)) ++at;
    } else if (is_letter(at) && is_letter(at + 1)) {
      return true;
    }
  }
  return false;
}

bool HoldsBox(std::string_view content) {
  constexpr std::string_view kCommand = "\\boxed{";
  const size_t begin = content.find(kCommand);
  if (begin == kNowhere) return false;
  const size_t inside = begin + kCommand.size();
  return inside < content.size() && content.find('}', inside + 1) != kNowhere;
}

constexpr int kFinalReach = 100;
constexpr int kReach = 50;
// Only the last ones are ever tried.
constexpr size_t kMaxPositions = 20;

// Where the last few positions of `word` begin; kNowhere where it has none.
size_t BeginOfLast(std::string_view text, std::string_view word) {
  std::vector<size_t> positions;
  for (size_t at = text.find(word); at != kNowhere; at = text.find(word, at + 1)) {
    positions.push_back(at);
  }
  if (positions.empty()) return kNowhere;
  return positions[positions.size() - std::min(positions.size(), kMaxPositions)];
}

void DropEarly(std::vector<AnswerPosition>& positions) {
  if (positions.size() < 2 * kMaxPositions) return;
  positions.erase(positions.begin(), positions.end() - static_cast<ptrdiff_t>(kMaxPositions));
}

// Calls `match` for the last few positions of `word` that no match before covers.
template <typename Match>
void ForEach(std::string_view text, std::string_view word, const Match& match,
             std::vector<AnswerPosition>& out) {
  for (size_t at = BeginOfLast(text, word); at != kNowhere;) {
    std::optional<AnswerPosition> position = match(at);
    const size_t next = position.has_value() ? std::max(position->end, at + 1) : at + 1;
    if (position.has_value()) out.push_back(*std::move(position));
    at = text.find(word, next);
  }
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
  if (close == kNowhere || close - begin > kMaxSpanBytes || IsEscaped(text_, close)) {
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
  if (close == kNowhere || close == begin || close - begin > kMaxSpanBytes ||
      IsEscaped(text_, close) || NextOf(lines_, begin) < close) {
    return std::nullopt;
  }
  return MathSpan{text_.substr(begin, close - begin), false, close + 2};
}

std::optional<MathSpan> MathSpans::MatchBrackets(size_t at) const {
  if (!IsAsciiSpace(text_[at]) || !StartsAt(text_, at + 1, "[")) return std::nullopt;
  const size_t begin = at + 2;
  const size_t close = text_.find_first_of("[]\n", begin);
  if (close == kNowhere || close == begin || text_[close] != ']') return std::nullopt;
  if (close + 1 >= text_.size() || !IsAsciiSpace(text_[close + 1])) return std::nullopt;
  return MathSpan{text_.substr(begin, close - begin), false, close + 2};
}

std::optional<MathSpan> MathSpans::MatchFraction(size_t at) const {
  size_t end = text_[at] == '-' ? at + 1 : at;
  if (!StartsAt(text_, end, "\\frac")) return std::nullopt;
  end += 5;
  for (int i = 0; i < 2; ++i) {
    if (!StartsAt(text_, end, "{")) return std::nullopt;
    end = SkipNumber(text_, end + 1);
    if (end == kNowhere || !StartsAt(text_, end, "}")) return std::nullopt;
    ++end;
  }
  return MathSpan{text_.substr(at, end - at), false, end};
}

bool MathSpans::IsBrokenInline(size_t begin, size_t end) const {
  constexpr size_t kMaxInlineBytes = 256;
  const size_t from = begin - std::min(begin, kMaxInlineBytes);
  const std::string_view before = text_.substr(from, begin - from);
  const std::string_view behind = text_.substr(end, kMaxInlineBytes);
  const bool dollars = before.rfind('$') != kNowhere && !IsEscaped(before, before.rfind('$'));
  const size_t open = before.rfind(dollars ? "$" : "\\(");
  const size_t close = behind.find(dollars ? "$" : "\\)");
  if (open == kNowhere || close == kNowhere || (close > 0 && IsEscaped(behind, close)))
    return false;
  const size_t inside = from + open + (dollars ? 1 : 2);
  const std::string_view content = text_.substr(inside, end + close - inside);
  // "$5" is money, and $$ may span lines.
  if (!IsAsciiSpace(content.front()) || (open > 0 && before[open - 1] == '$')) return false;
  return content.find('\n') != kNowhere && !HoldsWord(content);
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
  if (c != '$' && c != '\\' && c != '-' && !IsAsciiSpace(c)) return std::nullopt;
  std::optional<MathSpan> span = Match(at, boxed);
  if (!span.has_value()) return std::nullopt;
  MathSpanList list;
  while (span.has_value()) {
    list.spans.push_back(*span);
    list.end = span->end;
    const size_t next = SkipJoint(text_, list.end);
    if (list.spans.size() == kMaxSpans || next == kNowhere || next >= text_.size()) break;
    span = Match(next, boxed);
  }
  return list;
}

AnswerPositions::AnswerPositions(std::string_view text) : text_(text), spans_(text) {
  lower_.reserve(text.size());
  std::transform(text.begin(), text.end(), std::back_inserter(lower_),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
}

size_t AnswerPositions::Advance(size_t at) const {
  return at + CharacterBytes(text_, at);
}

std::optional<AnswerPosition> AnswerPositions::MathAt(size_t begin, size_t at) const {
  if (at >= text_.size()) return std::nullopt;
  std::optional<MathSpanList> list = spans_.MatchList(at, false);
  if (!list.has_value()) return std::nullopt;
  const size_t end = list->end;
  return AnswerPosition{begin, end, std::move(list), std::nullopt, {}};
}

bool AnswerPositions::IsBroken(const PlainMatch& match) const {
  const auto begin = static_cast<size_t>(match.text.data() - text_.data());
  return spans_.IsBrokenInline(begin, begin + match.text.size());
}

std::optional<AnswerPosition> AnswerPositions::PlainAt(size_t begin, size_t at) const {
  std::optional<PlainMatch> match = MatchPlain(text_, at);
  if (!match.has_value() || IsBroken(*match)) return std::nullopt;
  const size_t end = match->end;
  return AnswerPosition{begin, end, std::nullopt, std::move(match), {}};
}

std::optional<AnswerPosition> AnswerPositions::MathAfterIs(size_t begin, size_t at) const {
  if (at < text_.size() && text_[at] == ':') ++at;
  const size_t next = SkipSpace(text_, at);
  std::optional<AnswerPosition> position = MathAt(begin, next);
  // " [5] " wants its space.
  if (!position.has_value() && next > at) position = MathAt(begin, next - 1);
  return position;
}

std::optional<AnswerPosition> AnswerPositions::PlainAfterIs(size_t begin, size_t at) const {
  if (at < text_.size() && text_[at] == ':') ++at;
  const size_t next = SkipSpace(text_, at);
  return PlainAt(begin, next > at ? next - 1 : next);
}

bool AnswerPositions::IsHoped(size_t end) const {
  if (end < text_.size() && text_[end] == '.') ++end;
  if (end < text_.size() && IsAsciiSpace(text_[end])) ++end;
  return text_.substr(std::min(end, text_.size()), 6) == "I hope";
}

std::vector<AnswerPosition> AnswerPositions::Hoped() const {
  constexpr std::string_view kPhrase = "final answer is";
  std::vector<AnswerPosition> out;
  const auto checked = [this](std::optional<AnswerPosition> position) {
    return position.has_value() && IsHoped(position->end) ? position : std::nullopt;
  };
  ForEach(
      lower_, kPhrase, [&](size_t at) { return checked(MathAfterIs(at, at + kPhrase.size())); },
      out);
  ForEach(
      lower_, kPhrase, [&](size_t at) { return checked(PlainAfterIs(at, at + kPhrase.size())); },
      out);
  return out;
}

std::optional<AnswerPosition> AnswerPositions::FinalMath(size_t begin) const {
  size_t at = begin + std::string_view("final answer").size();
  for (int i = 0; i <= kFinalReach && at < text_.size(); ++i, at = Advance(at)) {
    const size_t word = SkipSpace(text_, at);
    if (word == at || text_.substr(word, 2) != "is") continue;
    std::optional<AnswerPosition> position = MathAfterIs(begin, word + 2);
    if (position.has_value()) return position;
  }
  return std::nullopt;
}

std::optional<AnswerPosition> AnswerPositions::FinalPlain(size_t begin) const {
  size_t at = begin + std::string_view("final answer").size();
  for (int i = 0; i <= kFinalReach && at < text_.size(); ++i, at = Advance(at)) {
    const size_t word = SkipSpace(text_, at);
    if (word != at && text_.substr(word, 2) == "is") {
      const size_t behind = word + 2;
      const size_t colon = behind < text_.size() && text_[behind] == ':' ? behind + 1 : behind;
      std::optional<AnswerPosition> position = PlainAt(begin, colon);
      if (position.has_value()) return position;
    }
    if (text_[at] == '\n') break;
  }
  return std::nullopt;
}

std::vector<AnswerPosition> AnswerPositions::Final() const {
  std::vector<AnswerPosition> out;
  ForEach(lower_, "final answer", [this](size_t at) { return FinalMath(at); }, out);
  ForEach(lower_, "final answer", [this](size_t at) { return FinalPlain(at); }, out);
  return out;
}

std::vector<AnswerPosition> AnswerPositions::Boxed() const {
  constexpr std::string_view kCommand = "\\boxed{";
  std::vector<AnswerPosition> out;
  const size_t first = text_.find(kCommand);
  if (first == kNowhere) return out;
  for (size_t at = 0; at < text_.size();) {
    std::optional<MathSpanList> list = spans_.MatchList(at, true);
    if (!list.has_value()) {
      ++at;
      continue;
    }
    const size_t end = list->end;
    out.push_back({at, end, std::move(list), std::nullopt, {}});
    DropEarly(out);
    at = end;
  }
  const size_t last = text_.rfind('}');
  if (last != kNowhere && last > first + kCommand.size()) {
    out.push_back(
        {first, last + 1, std::nullopt, std::nullopt, text_.substr(first, last + 1 - first)});
  }
  return out;
}

std::optional<AnswerPosition> AnswerPositions::AnnouncedMath(size_t begin, size_t at) const {
  for (int i = 0; i <= kReach && at < text_.size(); ++i, at = Advance(at)) {
    std::optional<AnswerPosition> position = MathAt(begin, at);
    if (position.has_value()) return position;
  }
  return std::nullopt;
}

std::optional<AnswerPosition> AnswerPositions::AnnouncedPlain(size_t begin, size_t at) const {
  const auto before_equal = [this](const std::optional<AnswerPosition>& position) {
    const size_t next = SkipSpace(text_, position->end);
    return next < text_.size() && text_[next] == '=';
  };
  // After the last "=" in reach, else the nearest.
  std::vector<size_t> equals;
  size_t next = at;
  for (int i = 0; i <= kFinalReach && next < text_.size() && text_[next] != '\n'; ++i) {
    if (text_[next] == '=') equals.push_back(next);
    next = Advance(next);
  }
  for (size_t i = equals.size(); i-- > 0;) {
    const size_t number = SkipSpace(text_, equals[i] + 1);
    std::optional<AnswerPosition> position =
        PlainAt(begin, number > equals[i] + 1 ? number - 1 : number);
    if (position.has_value() && !before_equal(position)) return position;
  }
  for (int i = 0; i <= kReach && at < text_.size(); ++i, at = Advance(at)) {
    std::optional<AnswerPosition> position = PlainAt(begin, at);
    if (position.has_value() && !before_equal(position)) return position;
    if (text_[at] == '\n') break;
  }
  return std::nullopt;
}

std::vector<AnswerPosition> AnswerPositions::Announced(bool colon) const {
  const std::string_view word = colon ? "answer:" : "answer";
  std::vector<AnswerPosition> out;
  ForEach(lower_, word, [&](size_t at) { return AnnouncedMath(at, at + word.size()); }, out);
  ForEach(lower_, word, [&](size_t at) { return AnnouncedPlain(at, at + word.size()); }, out);
  return out;
}

std::vector<AnswerPosition> AnswerPositions::Anywhere() const {
  constexpr size_t kPlainReach = 4096;
  std::vector<AnswerPosition> out;
  for (size_t at = 0; at < text_.size();) {
    std::optional<AnswerPosition> position = MathAt(at, at);
    const size_t next = position.has_value() ? position->end : at + 1;
    if (position.has_value()) out.push_back(*std::move(position));
    DropEarly(out);
    at = next;
  }
  for (const auto match : {MatchPlainArithmetic, MatchPlainNumber}) {
    std::vector<AnswerPosition> plain;
    for (size_t at = text_.size() - std::min(text_.size(), kPlainReach); at < text_.size();) {
      std::optional<PlainMatch> found = match(text_, at);
      if (!found.has_value()) {
        ++at;
        continue;
      }
      const size_t end = std::max(found->end, at + 1);
      if (!IsBroken(*found)) plain.push_back({at, end, std::nullopt, std::move(found), {}});
      DropEarly(plain);
      at = end;
    }
    std::move(plain.begin(), plain.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace pace::equiv
