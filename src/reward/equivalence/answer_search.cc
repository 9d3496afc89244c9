#include "reward/equivalence/answer_search.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "reward/boxed.h"
#include "reward/equivalence/answer_positions.h"
#include "reward/equivalence/answer_text.h"
#include "reward/equivalence/math_lexer.h"
#include "reward/equivalence/math_parser.h"
#include "reward/equivalence/plain_numbers.h"
#include "reward/equivalence/units.h"
#include "reward/python_characters.h"

namespace pace::equiv {
namespace {

constexpr size_t kMaxBareBytes = 1000;
constexpr size_t kMaxReadBytes = 10'000;

// Whether a run of letters can be part of a formula rather than of a sentence;
// a unit only after a number.
bool IsFormulaWord(std::string_view word, bool behind_number) {
  static constexpr std::array<std::string_view, 20> kSentenceWords = {
      "is", "it", "of", "to", "as",  "at",  "be",  "so",  "we",  "on",
      "an", "if", "my", "he", "the", "are", "has", "its", "not", "was"};
  static constexpr std::array<std::string_view, 12> kFormulaWords = {
      "and",     "or",       "percent", "percentage", "pct",      "infinity",
      "hundred", "thousand", "million", "billion",    "trillion", "dozen"};
  const auto holds = [&word](const auto& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (holds(kSentenceWords)) return false;
  return word.size() <= 3 || holds(kFormulaWords) || FindBareWord(word) != nullptr ||
         (behind_number && IsUnitWord(word));
}

// Whether the whole text can be read as mathematics without being marked as
// such: no sentence, no environment, no box.
bool IsBareMath(std::string_view text) {
  if (text.empty() || text.size() > kMaxBareBytes) return false;
  for (const std::string_view mark : {"\\(", "\\[", "\\boxed", "\\fbox"}) {
    if (text.find(mark) != kNowhere) return false;
  }
  for (size_t at = text.find('$'); at != kNowhere; at = text.find('$', at + 1)) {
    if (at == 0 || text[at - 1] != '\\') return false;
  }
  size_t num_words = 0;
  for (size_t at = 0; at < text.size();) {
    const bool is_command = text[at] == '\\';
    size_t end = is_command ? at + 1 : at;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    if (is_command && end < text.size() && text[end] == '{' &&
        (word.starts_with("\\text") || word.starts_with("\\mbox") || word.starts_with("\\math") ||
         word.starts_with("\\begin") || word.starts_with("\\end") ||
         word.starts_with("\\operatorname"))) {
      const size_t close = ClosingBrace(text, end);
      if (close == kNowhere) return false;
      end = close + 1;
    } else if (!is_command && !word.empty()) {
      const bool behind_number =
          std::any_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(at),
                      [](char c) { return c >= '0' && c <= '9'; });
      if (!IsFormulaWord(word, behind_number)) return false;
      if (word.size() == 3 && FindBareWord(word) == nullptr && ++num_words > 1) return false;
    }
    at = std::max(end, at + 1);
  }
  return true;
}

FoundAnswer ReadBareMath(std::string_view text) {
  FoundAnswer answer;
  answer.text = TidyAnswer(text, false);
  answer.first_text = answer.text;
  answer.measure = MeasureAtEnd(text);
  if (IsPlainNumber(text)) {
    MathNodePtr number = ReadPlain(*MatchPlainNumber(text, 0));
    if (number != nullptr) answer.readings.push_back(std::move(number));
    if (text.find(',') == kNowhere) return answer;
  }
  MathNodePtr reading = ReadAnswer(answer.text);
  if (reading != nullptr) answer.readings.push_back(std::move(reading));
  return answer;
}

// A list of environments makes one set; sets among them dissolve in it.
MathNodePtr JoinReadings(const std::vector<MathNodePtr>& readings) {
  std::vector<MathNodePtr> members;
  for (const MathNodePtr& reading : readings) {
    if (reading->kind == MathKind::kSet) {
      members.insert(members.end(), reading->args.begin(), reading->args.end());
    } else {
      members.push_back(reading);
    }
  }
  return MakeNode(MathKind::kSet, std::move(members));
}

struct PositionReading {
  MathNodePtr value;
  std::string text;
  size_t num_bytes = 0;  // read for it
};

PositionReading ReadSpans(const MathSpanList& list) {
  std::vector<MathNodePtr> readings;
  std::vector<std::string> texts;
  size_t num_bytes = 0;
  bool all_read = true;
  for (const MathSpan& span : list.spans) {
    const std::string tidied = TidyAnswer(span.content, false);
    MathNodePtr reading = ReadAnswer(tidied);
    all_read = all_read && reading != nullptr;
    if (reading != nullptr && span.has_percent) {
      reading = MakeNode(MathKind::kPercent, {std::move(reading)});
    }
    num_bytes += span.content.size();
    texts.push_back(tidied);
    readings.push_back(std::move(reading));
  }
  if (readings.size() == 1 || !all_read) return {readings[0], texts[0], num_bytes};
  std::string joined = texts[0];
  for (size_t i = 1; i < texts.size(); ++i) joined += " and " + texts[i];
  return {JoinReadings(readings), std::move(joined), num_bytes};
}

PositionReading ReadPosition(const AnswerPosition& position) {
  if (position.plain.has_value()) {
    const std::string_view text = position.plain->text;
    return {ReadPlain(*position.plain), std::string(text), text.size()};
  }
  if (position.math.has_value()) return ReadSpans(*position.math);
  std::string tidied = TidyAnswer(position.boxes, true);
  const size_t num_bytes = tidied.size();
  MathNodePtr reading = ReadAnswer(tidied);
  return {std::move(reading), std::move(tidied), num_bytes};
}

// The text of a position that holds one value.
std::string_view ContentOf(const AnswerPosition& position) {
  if (position.plain.has_value()) return position.plain->text;
  if (position.math.has_value()) {
    return position.math->spans.size() == 1 ? position.math->spans[0].content : std::string_view();
  }
  return position.boxes;
}

// In the position, or after it: "$5$ cm".
std::string MeasureOf(const AnswerPosition& position, std::string_view text) {
  const std::string_view content = ContentOf(position);
  if (content.empty()) return "";
  const std::string inside = MeasureAtEnd(JoinBoxes(content, true));
  if (!inside.empty()) return inside;
  const std::string_view behind =
      text.substr(static_cast<size_t>(content.data() - text.data()) + content.size());
  return MeasureAtBegin(behind.substr(std::min(behind.find_first_not_of("$\\)]"), behind.size())));
}

// Whether a text says what the answer is not: "the answer is not 5".
bool IsNegated(const AnswerPosition& position, std::string_view text) {
  const std::string_view content = ContentOf(position);
  if (content.empty()) return false;
  constexpr size_t kReach = 16;
  std::string_view before = text.substr(0, static_cast<size_t>(content.data() - text.data()));
  before.remove_prefix(before.size() - std::min(before.size(), kReach));
  while (!before.empty() && std::string_view(" $\\([*").find(before.back()) != kNowhere) {
    before.remove_suffix(1);
  }
  if (before.ends_with("n't")) return true;
  if (!before.ends_with("not") && !before.ends_with("Not")) return false;
  return before.size() == 3 || !IsAsciiLetter(before[before.size() - 4]);
}

// Tries the positions from the last; whether one could be read. Texts with that many
// unreadable positions hold no answer.
bool TryPositions(std::vector<AnswerPosition> positions, std::string_view text,
                  FoundAnswer& answer) {
  std::sort(positions.begin(), positions.end(),
            [](const AnswerPosition& a, const AnswerPosition& b) {
              return a.end != b.end ? a.end > b.end : a.begin < b.begin;
            });
  for (const AnswerPosition& position : positions) {
    if (answer.num_read_bytes > kMaxReadBytes) return false;
    if (IsNegated(position, text)) continue;
    PositionReading reading = ReadPosition(position);
    answer.num_read_bytes += reading.num_bytes;
    if (answer.first_text.empty()) answer.first_text = reading.text;
    if (answer.text.empty() || reading.value != nullptr) answer.text = std::move(reading.text);
    if (reading.value != nullptr) {
      answer.readings.push_back(std::move(reading.value));
      answer.measure = MeasureOf(position, text);
      return true;
    }
  }
  return false;
}

}  // namespace

MathNodePtr ReadAnswer(std::string_view tidied) {
  MathNodePtr reading = ParseMath(tidied);
  if (reading != nullptr) return reading;
  const std::string_view end = BehindLastEqual(tidied);
  return end.size() == tidied.size() ? nullptr : ParseMath(end);
}

FoundAnswer FindAnswer(std::string_view text) {
  const std::string_view stripped = StripSpace(text);
  if (IsBareMath(stripped)) {
    // Numbers inside of what cannot be read are not what it says.
    return ReadBareMath(stripped);
  }
  FoundAnswer answer;
  const AnswerPositions positions(text);
  if (TryPositions(positions.Hoped(), text, answer)) return answer;
  std::vector<AnswerPosition> marked = positions.Final();
  std::vector<AnswerPosition> boxed = positions.Boxed();
  const bool has_box = !boxed.empty();
  std::move(boxed.begin(), boxed.end(), std::back_inserter(marked));
  if (TryPositions(std::move(marked), text, answer) || has_box) return answer;
  if (TryPositions(positions.Announced(true), text, answer)) return answer;
  if (TryPositions(positions.Announced(false), text, answer)) return answer;
  TryPositions(positions.Anywhere(), text, answer);
  return answer;
}

}  // namespace pace::equiv
