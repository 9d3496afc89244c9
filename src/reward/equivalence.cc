#include "reward/equivalence.h"

#include <algorithm>
#include <string>

#include "reward/boxed.h"
#include "reward/equivalence/answer_search.h"
#include "reward/equivalence/answer_text.h"
#include "reward/equivalence/math_comparer.h"
#include "reward/equivalence/units.h"
#include "reward/python_characters.h"

namespace pace {
namespace {

// Longer answers are no words and no choice.
constexpr size_t kMaxWordsBytes = 1000;

// The end of a long text, which is where its answer stands; from the beginning of a
// line where one is near, for a "$" must not be parted from its partner.
std::string_view EndOf(std::string_view text) {
  constexpr size_t kNear = 1024;
  if (text.size() <= kMaxVerifiedBytes) return text;
  text.remove_prefix(text.size() - kMaxVerifiedBytes);
  const size_t line = text.substr(0, kNear).find('\n');
  if (line != kNowhere) return text.substr(line + 1);
  const auto is_continued = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  while (!text.empty() && is_continued(text[0])) text.remove_prefix(1);
  return text;
}

// Space between digits stays: "2 1/3" is not "21/3".
std::string WithoutSpace(std::string_view text) {
  std::string out;
  bool behind_space = false;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      behind_space = true;
      continue;
    }
    if (behind_space && IsDigit(c) && !out.empty() && IsDigit(out.back())) out += ' ';
    behind_space = false;
    out += c;
  }
  return out;
}

bool IsSameText(std::string_view answer, std::string_view ours) {
  const std::string wanted = WithoutSpace(answer);
  return !wanted.empty() && wanted == WithoutSpace(ours);
}

// Whether "2,3" can be nothing but a decimal: "0,111" and "1000,99".
bool IsDecimalComma(std::string_view text) {
  constexpr size_t kMinDigits = 4;
  if (text.starts_with("-")) text.remove_prefix(1);
  const std::string_view whole = text.substr(0, text.find(','));
  return whole == "0" || whole.size() >= kMinDigits;
}

bool AnyReadingIsSame(const equiv::FoundAnswer& right, const equiv::FoundAnswer& ours) {
  equiv::MathComparer comparer;
  for (const equiv::MathNodePtr& wanted : right.readings) {
    const bool is_list_too = right.readings.size() > 1 && wanted->num_places > 0;
    if (is_list_too && !IsDecimalComma(right.text)) continue;
    for (const equiv::MathNodePtr& given : ours.readings) {
      if (comparer.IsSame(wanted, given)) return true;
    }
  }
  return false;
}

// Where what the last "answer is" or "answer:" announces begins; 0 where the
// text has neither.
size_t BeginOfAnnounced(std::string_view response) {
  size_t begin = 0;
  for (const std::string_view phrase : {"answer is", "nswer:"}) {
    const size_t at = response.rfind(phrase);
    if (at != kNowhere) begin = std::max(begin, at + phrase.size());
  }
  return begin;
}

// \text{June 20} is read, as a name.
bool IsWord(const equiv::FoundAnswer& answer) {
  constexpr size_t kMinLetters = 3;
  if (answer.readings.size() != 1) return false;
  const equiv::MathNode& reading = *answer.readings[0];
  return reading.kind == equiv::MathKind::kSymbol && reading.name.size() >= kMinLetters &&
         std::all_of(reading.name.begin(), reading.name.end(),
                     [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'z'); });
}

// For answers that are words: the same words, in the place where ours was found
// or in the sentence that announces it.
bool IsSameInWords(std::string_view answer, const equiv::FoundAnswer& ours,
                   std::string_view response) {
  if (answer.size() > kMaxWordsBytes) return false;
  const std::string wanted = equiv::PlainWords(equiv::TidyAnswer(answer, true));
  if (wanted.empty()) return false;
  if (wanted == equiv::PlainWords(ours.text)) return true;
  const std::string_view rest = response.substr(BeginOfAnnounced(response));
  return wanted == equiv::PlainWords(rest.substr(0, rest.find_first_of(".\n")));
}

// Whether what follows a choice names a second: "A, B", "(A) or (B)".
bool NamesAnotherChoice(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(".)* "), rest.size()));
  bool joined = false;
  for (const std::string_view joint : {",", "/", "&", "and ", "or "}) {
    if (!rest.starts_with(joint)) continue;
    rest.remove_prefix(joint.size());
    rest.remove_prefix(std::min(rest.find_first_not_of("(* "), rest.size()));
    joined = true;
  }
  if (!joined || rest.empty() || rest[0] < 'A' || rest[0] > 'J') return false;
  return rest.size() == 1 || std::string_view(".,:;)*/ \n").find(rest[1]) != kNowhere;
}

// For answers that are a choice, "C": the letter that begins the announced
// answer, as in "Answer: (C) 12", or a response of one line, as in "C. 12". A box, where
// there is one, has said it already.
bool IsSameChoice(std::string_view answer, std::string_view response) {
  if (answer.size() > kMaxWordsBytes) return false;
  const std::string choice = equiv::PlainWords(equiv::TidyAnswer(answer, true));
  if (choice.size() != 1 || choice[0] < 'a' || choice[0] > 'j') return false;
  if (response.find("\\boxed") != kNowhere) return false;
  const size_t begin = BeginOfAnnounced(response);
  if (begin == 0 && response.find_first_of("$\\\n") != kNowhere) return false;
  const size_t letter = response.find_first_not_of(" \t\n*(:", begin);
  if (letter == kNowhere || response[letter] != choice[0] - 32) return false;
  if (letter + 1 == response.size()) return true;
  if (NamesAnotherChoice(response.substr(letter + 1))) return false;
  const std::string_view followers = begin > 0 ? ".,:;)* \n" : ".,:;)*";
  return followers.find(response[letter + 1]) != kNowhere;
}

}  // namespace

Verification VerifyEquivalence(std::string_view whole_response, std::string_view whole_answer) {
  const std::string_view response = EndOf(whole_response);
  const std::string_view answer = EndOf(whole_answer);
  const equiv::FoundAnswer right = equiv::FindAnswer(answer);
  const equiv::FoundAnswer ours = equiv::FindAnswer(response);
  const bool may_be_words = right.readings.empty() || ours.readings.empty() || IsWord(right);
  const bool correct =
      (IsSameText(right.first_text, ours.first_text) || AnyReadingIsSame(right, ours) ||
       (may_be_words && IsSameInWords(answer, ours, response)) || IsSameChoice(answer, response)) &&
      !equiv::AreDifferentMeasures(right.measure, ours.measure) &&
      !equiv::EndInOpposites(JoinBoxes(answer, true), JoinBoxes(response, true));
  if (ours.text.empty()) return ZeroOrOne(correct, std::nullopt);
  return ZeroOrOne(correct, ours.text);
}

}  // namespace pace
