#include "reward/equivalence/plain_numbers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/utf8.h"
#include "reward/equivalence/math_parser.h"
#include "reward/python_characters.h"

namespace pace::equiv {
namespace {

// Longer ones are no answer, and are looked at again from every place in them.
constexpr size_t kMaxNumberBytes = 1000;
constexpr size_t kMaxArithmeticBytes = 200;

size_t SkipDigits(std::string_view text, size_t at) {
  const size_t limit = std::min(text.size(), at + kMaxNumberBytes);
  while (at < limit && IsDigit(text[at])) ++at;
  return at;
}

// After (^|\s|=)(\*\*)?; kNowhere where no number may begin.
size_t SkipPrefix(std::string_view text, size_t at) {
  if (at >= text.size()) return kNowhere;
  const bool at_begin = at == 0 && !IsAsciiSpace(text[0]) && text[0] != '=';
  if (!at_begin && !IsAsciiSpace(text[at]) && text[at] != '=') return kNowhere;
  if (!at_begin) ++at;
  return text.substr(at, 2) == "**" ? at + 2 : at;
}

size_t SkipCurrency(std::string_view text, size_t at) {
  if (text.substr(std::min(at, text.size()), 2) == "\\$") return at + 2;
  if (at >= text.size()) return at;
  const CodePoint point = ReadCodePoint(text, at);
  const bool is_sign = point.code == '$' || point.code == 0xA3 || point.code == 0xA5 ||
                       (point.code >= 0x20A0 && point.code <= 0x20C0) || point.code == 0xE3F;
  return is_sign ? at + point.num_bytes : at;
}

// The end of [1-9]\d{0,2}([ ,]\d{3})+(\.\d+)? at `at`, or kNowhere.
size_t SkipGrouped(std::string_view text, size_t at) {
  size_t end = SkipDigits(text, at);
  if (end == at || end - at > 3 || text[at] == '0') return kNowhere;
  const size_t first_group = end;
  const size_t limit = at + kMaxNumberBytes;
  while (end < std::min(text.size(), limit) && (text[end] == ',' || text[end] == ' ') &&
         SkipDigits(text, end + 1) >= end + 4) {
    end += 4;
  }
  if (end == first_group) return kNowhere;
  const bool has_point = end + 1 < text.size() && text[end] == '.' && IsDigit(text[end + 1]);
  return has_point ? SkipDigits(text, end + 1) : end;
}

// The end of \d+[.,]\d+ | \.\d+ | \d+ at `at`, or kNowhere.
size_t SkipSimple(std::string_view text, size_t at) {
  const size_t whole = SkipDigits(text, at);
  const bool has_mark = whole + 1 < text.size() && IsDigit(text[whole + 1]) &&
                        (text[whole] == '.' || (text[whole] == ',' && whole > at));
  if (has_mark) return SkipDigits(text, whole + 1);
  return whole == at ? kNowhere : whole;
}

size_t SkipPercent(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsAsciiSpace(text[end])) ++end;
  for (const std::string_view sign :
       {"%", "percentage", "Percentage", "percent", "Percent", "pct", "Pct"}) {
    if (text.substr(end, sign.size()) == sign) return end + sign.size();
  }
  return at;
}

struct ScaleWord {
  size_t end = kNowhere;
  int64_t factor = 1;
};

// " million" after a number that ends at `at`.
ScaleWord ScaleWordAt(std::string_view text, size_t at) {
  static constexpr std::pair<std::string_view, int64_t> kWords[] = {{"hundred", 100},
                                                                    {"thousand", 1'000},
                                                                    {"million", 1'000'000},
                                                                    {"billion", 1'000'000'000},
                                                                    {"trillion", 1'000'000'000'000},
                                                                    {"dozen", 12}};
  if (at >= text.size() || text[at] != ' ') return {};
  for (const auto& [word, factor] : kWords) {
    if (text.substr(at + 1, word.size()) == word) return {at + 1 + word.size(), factor};
  }
  return {};
}

std::optional<PlainMatch> MatchNumber(std::string_view text, size_t at) {
  if (at > 0 && at <= text.size() && IsDigit(text[at - 1])) return std::nullopt;
  const size_t digits = at < text.size() && text[at] == '-' ? at + 1 : at;
  size_t end = SkipGrouped(text, digits);
  if (end == kNowhere) end = SkipSimple(text, digits);
  if (end == kNowhere) return std::nullopt;
  const ScaleWord scale = ScaleWordAt(text, end);
  if (scale.end != kNowhere) {
    return PlainMatch{text.substr(at, end - at), false, false, scale.end, scale.factor};
  }
  const size_t behind = SkipPercent(text, end);
  return PlainMatch{text.substr(at, end - at), false, behind != end, behind};
}

MathNodePtr ReadNumber(std::string_view text) {
  const bool negative = text[0] == '-';
  if (negative) text.remove_prefix(1);
  std::string digits(text);
  if (SkipGrouped(text, 0) == text.size()) {
    std::erase_if(digits, [](char c) { return c == ',' || c == ' '; });
  } else {
    std::replace(digits.begin(), digits.end(), ',', '.');
  }
  const MaybeRational value = Rational::FromText(digits);
  if (!value.has_value()) return nullptr;
  auto node = std::make_shared<MathNode>();
  node->number = negative ? Negate(*value) : *value;
  const size_t point = digits.find('.');
  if (point != kNowhere) node->num_places = digits.size() - point - 1;
  return node;
}

bool IsArithmeticCharacter(char c) {
  static constexpr std::array<bool, 256> kIs = [] {
    std::array<bool, 256> is{};
    for (const char known : std::string_view("0123456789. \t\n\v\f\r+-*/^()")) {
      is[static_cast<unsigned char>(known)] = true;
    }
    return is;
  }();
  return kIs[static_cast<unsigned char>(c)];
}

// Whether what ends at `end` is followed by punctuation, space or nothing; then
// the end after that.
size_t SkipSuffix(std::string_view text, size_t end) {
  if (text.substr(std::min(end, text.size()), 2) == "**") end += 2;
  if (end >= text.size()) return text.size();
  const char c = text[end];
  return IsAsciiSpace(c) || std::string_view(".,:)$").find(c) != kNowhere ? end + 1 : kNowhere;
}

// Python's notation: no products without a sign.
MathNodePtr ReadArithmetic(std::string_view text) {
  std::string plain;
  char last = '\0';
  for (const char c : text) {
    if (IsAsciiSpace(c)) {
      plain += ' ';
      continue;
    }
    const bool joins = (last == ')' && (c == '(' || IsDigit(c))) || (IsDigit(last) && c == '(');
    if (joins) return nullptr;
    plain += c;
    last = c;
  }
  return ParseMath(ReplaceAll(plain, "**", "^"));
}

}  // namespace

std::optional<PlainMatch> MatchPlainNumber(std::string_view text, size_t at) {
  const size_t begin = SkipPrefix(text, at);
  if (begin == kNowhere) return std::nullopt;
  return MatchNumber(text, SkipCurrency(text, begin));
}

std::optional<PlainMatch> MatchPlainArithmetic(std::string_view text, size_t at) {
  const size_t begin = SkipPrefix(text, at);
  if (begin == kNowhere) return std::nullopt;
  size_t digit = begin;
  for (const char sign : {'-', '(', '-'}) {
    if (digit < text.size() && text[digit] == sign) ++digit;
  }
  if (digit >= text.size() || !IsDigit(text[digit])) return std::nullopt;
  const size_t limit = std::min(text.size(), begin + kMaxArithmeticBytes);
  size_t sign = kNowhere;
  size_t end = digit + 1;
  for (; end < limit && IsArithmeticCharacter(text[end]); ++end) {
    const bool is_operand = IsDigit(text[end]) || text[end] == '.' || IsAsciiSpace(text[end]);
    if (sign == kNowhere && !is_operand) sign = end;
  }
  if (sign == kNowhere) return std::nullopt;
  while (end > sign && SkipSuffix(text, end) == kNowhere) --end;
  if (end < sign + 2) return std::nullopt;
  std::string_view found = text.substr(begin, end - begin);
  while (found.back() == '.' || IsAsciiSpace(found.back())) found.remove_suffix(1);
  return PlainMatch{found, true, false, SkipSuffix(text, end)};
}

std::optional<PlainMatch> MatchPlain(std::string_view text, size_t at) {
  std::optional<PlainMatch> arithmetic = MatchPlainArithmetic(text, at);
  return arithmetic.has_value() ? arithmetic : MatchPlainNumber(text, at);
}

MathNodePtr ReadPlain(const PlainMatch& match) {
  if (match.is_arithmetic) return ReadArithmetic(match.text);
  MathNodePtr number = ReadNumber(match.text);
  if (number != nullptr && match.factor != 1) {
    return MakeProduct({std::move(number), MakeInteger(match.factor)});
  }
  if (number == nullptr || !match.has_percent) return number;
  return MakeNode(MathKind::kPercent, {std::move(number)});
}

bool IsPlainNumber(std::string_view text) {
  const std::optional<PlainMatch> match = MatchNumber(text, SkipCurrency(text, 0));
  return match.has_value() && match->end == text.size();
}

}  // namespace pace::equiv
