#include "reward/dapo.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/utf8.h"
#include "reward/boxed.h"
#include "reward/python_characters.h"

namespace pace {
namespace {

constexpr size_t kWindow = 300;
constexpr size_t kStrictWindow = 100;

struct Substitution {
  std::string_view before;
  std::string_view after;
};

constexpr Substitution kSubstitutions[] = {
    {"an ", ""},          {"a ", ""},
    {".$", "$"},          {"\\$", ""},
    {"\\ ", ""},          {" ", ""},
    {"mbox", "text"},     {",\\text{and}", ","},
    {"\\text{and}", ","}, {"\\text{m}", "\\text{}"},
};

constexpr std::string_view kDeletions[] = {
    "square",     "ways",       "integers",  "dollars",      "mph",
    "inches",     "hours",      "km",        "units",        "\\ldots",
    "sue",        "points",     "feet",      "minutes",      "digits",
    "cents",      "degrees",    "cm",        "gm",           "pounds",
    "meters",     "meals",      "edges",     "students",     "childrentickets",
    "multiples",  "\\text{s}",  "\\text{.}", "\\text{\ns}",  "\\text{}^2",
    "\\text{}^3", "\\text{\n}", "\\text{}",  "\\mathrm{th}", "^\\circ",
    "^{\\circ}",  "\\;",        ",\\!",      "{,}",          "\"",
    "\\dots",
};

// The end of `word` in any case at `at`, or kNowhere. Python's re folds U+017F to
// "s", and no other character outside ASCII to a letter of the words used here.
size_t MatchWord(std::string_view text, size_t at, std::string_view word) {
  constexpr uint32_t kLongS = 0x17F;
  for (const char letter : word) {
    if (at >= text.size()) return kNowhere;
    const CodePoint point = ReadCodePoint(text, at);
    const char folded = point.code >= 'A' && point.code <= 'Z' ? static_cast<char>(point.code + 32)
                        : point.code == kLongS                 ? 's'
                        : point.code < 0x80                    ? static_cast<char>(point.code)
                                                               : '\0';
    if (folded != letter) return kNowhere;
    at += point.num_bytes;
  }
  return at;
}

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint point = ReadCodePoint(text, at);
    if (!IsPythonSpace(point.code)) break;
    at += point.num_bytes;
  }
  return at;
}

// Where the captured rest of the line begins after a colon. Space is skipped;
// where nothing but space follows, its last character that is no line break is
// the answer, for so the expression backtracks.
size_t BeginOfCapture(std::string_view text, size_t behind_colon) {
  const size_t at = SkipSpace(text, behind_colon);
  if (at < text.size()) return at;
  size_t last = kNowhere;
  for (size_t i = behind_colon; i < text.size(); i += CharacterBytes(text, i)) {
    if (text[i] != '\n') last = i;
  }
  return last;
}

// One match of `Answer\s*:\s*([^\n]+)` at `at`: what it captures.
std::optional<std::string_view> MatchAnswerLine(std::string_view text, size_t at) {
  size_t behind = MatchWord(text, at, "answer");
  if (behind == kNowhere) return std::nullopt;
  behind = SkipSpace(text, behind);
  if (behind >= text.size() || text[behind] != ':') return std::nullopt;
  const size_t begin = BeginOfCapture(text, behind + 1);
  if (begin == kNowhere) return std::nullopt;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// In every line that holds two "$", only what is between the first two stays.
std::string KeepFirstMath(std::string_view text) {
  std::string out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const size_t first = line.find('$');
    const size_t second = first == kNowhere ? kNowhere : line.find('$', first + 1);
    out += second == kNowhere ? line : line.substr(first, second + 1 - first);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

// Replaces `command` + "{" ... "}" by what is inside, up to the first closing
// brace of the line, or the last one where `greedy`.
std::string Unwrap(std::string_view text, std::string_view command, bool greedy) {
  std::string out;
  size_t at = 0;
  size_t line_end = 0;
  for (size_t found = text.find(command); found != kNowhere; found = text.find(command, at)) {
    const size_t inside = found + command.size();
    if (line_end < inside) line_end = std::min(text.find('\n', inside), text.size());
    const std::string_view line = text.substr(inside, line_end - inside);
    const size_t close = greedy ? line.rfind('}') : line.find('}');
    if (close == kNowhere) {
      // Nor is one after any other command of this line.
      out += text.substr(at, line_end - at);
      at = line_end;
      continue;
    }
    out += text.substr(at, found - at);
    out += line.substr(0, close);
    at = inside + close + 1;
  }
  out += text.substr(at);
  return out;
}

// frac12 -> frac{1}{2}; a brace after "frac" or a line break in second place
// leaves it as it is.
std::string BraceFractions(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t found = text.find("frac", at);
    if (found == kNowhere) break;
    const size_t first = found + 4;
    const size_t second = first < text.size() ? first + CharacterBytes(text, first) : kNowhere;
    out += text.substr(at, first - at);
    at = first;
    if (first >= text.size() || text[first] == '{' || second >= text.size() ||
        text[second] == '\n') {
      continue;
    }
    const size_t end = second + CharacterBytes(text, second);
    out += '{';
    out += text.substr(first, second - first);
    out += "}{";
    out += text.substr(second, end - second);
    out += '}';
    at = end;
  }
  out += text.substr(at);
  return out;
}

std::string BraceRoots(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t found = text.find("sqrt", at);
    if (found == kNowhere) break;
    const size_t first = found + 4;
    out += text.substr(at, first - at);
    at = first;
    if (first >= text.size() || text[first] == '{') continue;
    at = first + CharacterBytes(text, first);
    out += '{';
    out += text.substr(first, at - first);
    out += '}';
  }
  out += text.substr(at);
  return out;
}

constexpr uint32_t kMinusSign = 0x2212;

// Lengths of the runs of digits between commas: one run of any length, or one
// to three digits and then threes.
bool AreGroupsOfThree(const std::vector<size_t>& runs) {
  if (runs.size() == 1) return runs[0] > 0;
  if (runs[0] < 1 || runs[0] > 3) return false;
  return std::all_of(runs.begin() + 1, runs.end(), [](size_t length) { return length == 3; });
}

}  // namespace

std::string ExtractDapo(std::string_view response) {
  const std::string_view text = LastCharacters(response, kWindow);
  std::string_view last = "[INVALID]";
  for (size_t at = 0; at < text.size();) {
    const std::optional<std::string_view> captured = MatchAnswerLine(text, at);
    if (captured.has_value()) {
      last = *captured;
      at = static_cast<size_t>(captured->data() - text.data()) + captured->size();
    } else {
      at += CharacterBytes(text, at);
    }
  }
  return std::string(last);
}

std::string NormalizeDapo(std::string_view text) {
  const size_t equals = text.rfind('=');
  std::string out(equals == kNowhere ? text : text.substr(equals + 1));
  for (const Substitution& rule : kSubstitutions) out = ReplaceAll(out, rule.before, rule.after);
  for (const std::string_view word : kDeletions) out = ReplaceAll(out, word, "");
  out = KeepFirstMath(out);
  out = Unwrap(out, "\\text{", false);
  out = Unwrap(out, "\\textbf{", false);
  out = Unwrap(out, "\\overline{", false);
  out = Unwrap(out, "\\boxed{", true);
  out = BraceRoots(BraceFractions(out));
  out = ReplaceAll(out, "$", "");
  std::string digits = ReplaceAll(out, ",", "");
  if (IsAllDigits(digits)) out = std::move(digits);
  return std::string(StripSpace(out));
}

Verification VerifyDapo(std::string_view response, std::string_view answer) {
  std::string extracted = NormalizeDapo(ExtractDapo(response));
  const bool correct = extracted == NormalizeDapo(answer);
  return Signed(correct, std::move(extracted));
}

Verification VerifyDapoStrict(std::string_view response, std::string_view answer) {
  const std::optional<std::string_view> boxed = LastBoxed(LastCharacters(response, kStrictWindow));
  if (!boxed.has_value()) return Signed(false, std::nullopt);
  return Signed(*boxed == answer, std::string(*boxed));
}

std::optional<std::string> CanonicalInteger(std::string_view text) {
  if (text.empty()) return std::nullopt;
  bool negative = false;
  const CodePoint sign = ReadCodePoint(text, 0);
  if (sign.code == '+' || sign.code == '-' || sign.code == kMinusSign) {
    negative = sign.code != '+';
    text.remove_prefix(sign.num_bytes);
  }
  std::string digits;
  std::vector<size_t> runs = {0};
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    at += point.num_bytes;
    if (point.code == ',') {
      runs.push_back(0);
      continue;
    }
    const std::optional<int> value = DecimalDigitValue(point.code);
    if (!value.has_value()) return std::nullopt;
    digits += static_cast<char>('0' + *value);
    ++runs.back();
  }
  if (!AreGroupsOfThree(runs)) return std::nullopt;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return negative && digits != "0" ? "-" + digits : digits;
}

Verification VerifyDapoInteger(std::string_view response, std::string_view answer) {
  std::string extracted = NormalizeDapo(ExtractDapo(response));
  const std::string wanted = NormalizeDapo(answer);
  if (extracted == wanted) return Signed(true, std::move(extracted));
  const std::optional<std::string> ours = CanonicalInteger(extracted);
  const std::optional<std::string> right = ours.has_value() ? CanonicalInteger(wanted) : ours;
  const bool correct = ours.has_value() && ours == right;
  return Signed(correct, std::move(extracted));
}

Verification VerifyRetool(std::string_view response, std::string_view answer, int64_t num_turns) {
  Verification seen = VerifyDapoStrict(response, answer);
  if (!seen.correct) {
    // In this order of operations, for the same bits as the recipe.
    const double bonus = (static_cast<double>(num_turns) - 2.0) / 2.0 * 0.1;
    seen.score = std::min(-0.6, seen.score + bonus);
  }
  if (!seen.extracted.has_value()) seen.extracted = "";
  return seen;
}

}  // namespace pace
