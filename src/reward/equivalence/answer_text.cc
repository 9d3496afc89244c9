#include "reward/equivalence/answer_text.h"

#include <algorithm>
#include <utility>

#include "reward/boxed.h"
#include "reward/equivalence/math_parser.h"
#include "reward/equivalence/units.h"
#include "reward/python_characters.h"

namespace pace::equiv {
namespace {

constexpr std::pair<std::string_view, std::string_view> kScales[] = {
    {"hundred", "\\cdot10^{2}"}, {"thousand", "\\cdot10^{3}"},  {"million", "\\cdot10^{6}"},
    {"billion", "\\cdot10^{9}"}, {"trillion", "\\cdot10^{12}"}, {"dozen", "\\cdot12 "},
};

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

bool StartsAt(std::string_view text, size_t at, std::string_view word) {
  return text.substr(std::min(at, text.size()), word.size()) == word;
}

// The end of `word` at `at` where no letter touches it; kNowhere otherwise.
size_t WordAt(std::string_view text, size_t at, std::string_view word) {
  if (!StartsAt(text, at, word)) return kNowhere;
  const size_t end = at + word.size();
  if (at > 0 && (IsAsciiLetter(text[at - 1]) || text[at - 1] == '\\')) return kNowhere;
  if (end < text.size() && IsAsciiLetter(text[end])) return kNowhere;
  return end;
}

// The end of \text{ word } and its kin.
size_t TextCommandAt(std::string_view text, size_t at, std::string_view word) {
  if (!StartsAt(text, at, "\\t") && !StartsAt(text, at, "\\m")) return kNowhere;
  for (const std::string_view command : {"\\text", "\\mbox", "\\textbf", "\\mathrm", "\\textrm"}) {
    if (!StartsAt(text, at, command)) continue;
    size_t next = SkipSpace(text, at + command.size());
    if (next >= text.size() || text[next] != '{') continue;
    next = SkipSpace(text, next + 1);
    if (!StartsAt(text, next, word)) continue;
    next = SkipSpace(text, next + word.size());
    if (next < text.size() && text[next] == '}') return next + 1;
  }
  return kNowhere;
}

size_t EitherAt(std::string_view text, size_t at, std::string_view word) {
  const size_t end = WordAt(text, at, word);
  return end != kNowhere ? end : TextCommandAt(text, at, word);
}

struct Replacement {
  size_t end = kNowhere;
  std::string_view symbol;
};

// The end of what reads as a comma: ", and", "or", \text{ and }, {,}.
size_t SeparatorAt(std::string_view text, size_t at) {
  const size_t word = SkipSpace(text, at + (text[at] == ',' ? 1 : 0));
  for (const std::string_view joint : {"and", "or"}) {
    const size_t end = EitherAt(text, word, joint);
    if (end != kNowhere) return end;
  }
  const size_t open = SkipSpace(text, at);
  if (open >= text.size() || text[open] != '{') return kNowhere;
  const size_t comma = SkipSpace(text, open + 1);
  if (comma >= text.size() || text[comma] != ',') return kNowhere;
  const size_t close = SkipSpace(text, comma + 1);
  return close < text.size() && text[close] == '}' ? close + 1 : kNowhere;
}

// The end of a word for percent, space before it included.
size_t PercentAt(std::string_view text, size_t at) {
  const size_t word = SkipSpace(text, at);
  for (const std::string_view name : {"percentage", "percent", "pct"}) {
    const size_t end = EitherAt(text, word, name);
    if (end != kNowhere) return end;
  }
  return kNowhere;
}

// The words that count a number in thousands and the like, after one; their value
// as a factor.
Replacement ScaleAt(std::string_view text, size_t at) {
  const size_t word = SkipSpace(text, at);
  const char before = at > 0 ? text[at - 1] : '\0';
  if (!(before >= '0' && before <= '9') && before != '}') return {};
  for (const auto& [name, factor] : kScales) {
    const size_t end = EitherAt(text, word, name);
    if (end != kNowhere) return {end, factor};
  }
  return {};
}

size_t InfinityAt(std::string_view text, size_t at) {
  const size_t end = WordAt(text, at, "infinity");
  return end != kNowhere ? end : WordAt(text, at, "inf");
}

// The dots after a decimal that goes on: 0.333\ldots
size_t DotsAt(std::string_view text, size_t at) {
  size_t digits = at;
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  if (digits == at || digits == 0 || text[digits - 1] != '.') return kNowhere;
  for (const std::string_view name : {"\\ldots", "\\cdots", "\\dots"}) {
    if (StartsAt(text, at, name)) return at + name.size();
  }
  return kNowhere;
}

// What only decorates: dollar signs, quotes, thin spaces, "th", empty texts.
size_t NoiseAt(std::string_view text, size_t at) {
  const bool escaped = at > 0 && text[at - 1] == '\\';
  if (text[at] == '$') return at + 1;
  if (text[at] == '"' && !escaped) return at + 1;
  // Quotes, not the prime of f' and the minutes of 30\circ 15'.
  if (text[at] == '\'' && text.size() > 1 && (at == 0 || at + 1 == text.size())) {
    return text.front() == '\'' && text.back() == '\'' ? at + 1 : kNowhere;
  }
  if (text[at] != '\\') return kNowhere;
  if (StartsAt(text, at, "\\$")) return at + 2;
  if (StartsAt(text, at, "\\!")) return SkipSpace(text, at + 2);
  if (StartsAt(text, at, "\\mathrm{th}")) return at + 11;
  if (StartsAt(text, at, "\\displaystyle")) return at + 13;
  return TextCommandAt(text, at, "");
}

// Also makes every run of space one space, so that the rules that follow may
// look over it from every place before it.
std::string WithoutNoise(std::string_view text) {
  std::string single;
  for (const char c : text) {
    if (!IsSpace(c)) {
      single += c;
    } else if (single.empty() || single.back() != ' ') {
      single += ' ';
    }
  }
  std::string out;
  for (size_t at = 0; at < single.size();) {
    const size_t end = NoiseAt(single, at);
    if (end == kNowhere) {
      out += single[at++];
    } else {
      at = end;
    }
  }
  return out;
}

// The word at `at` that has a symbol, with its end; kNowhere where there is none.
Replacement SymbolAt(std::string_view text, size_t at) {
  const char c = text[at];
  const bool begins_word =
      (c == 'a' || c == 'o' || c == 'p' || c == 'i') && (at == 0 || !IsAsciiLetter(text[at - 1]));
  if (!begins_word && c != ' ' && c != ',' && c != '{' && c != '\\') return {};
  const bool escaped_space = StartsAt(text, at, "\\ ") && (at == 0 || text[at - 1] != '\\');
  for (const Replacement& rule :
       {Replacement{SeparatorAt(text, at), ","}, Replacement{PercentAt(text, at), "\\%"},
        ScaleAt(text, at), Replacement{InfinityAt(text, at), "\\infty "},
        Replacement{DotsAt(text, at), " "}, Replacement{escaped_space ? at + 2 : kNowhere, " "}}) {
    if (rule.end != kNowhere) return rule;
  }
  return {};
}

// REQUIRES: space is ' ' alone, one at a time
std::string WithSymbolsForWords(std::string_view text) {
  std::string out;
  bool is_balanced = true;
  for (size_t at = 0; at < text.size();) {
    const Replacement found = SymbolAt(text, at);
    if (found.end != kNowhere) {
      out += found.symbol;
      at = found.end;
      continue;
    }
    // The words of a longer \text{...} are its own.
    const bool is_text = StartsAt(text, at, "\\text{") || StartsAt(text, at, "\\mbox{");
    const size_t close = is_text && is_balanced ? ClosingBrace(text, at + 5) : at;
    is_balanced = is_balanced && close != kNowhere;
    const size_t end = close == kNowhere ? at + 1 : close + 1;
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

// "\\frac" as some sources escape it; rows of matrices keep their "\\".
std::string WithSingleBackslashes(std::string text) {
  if (text.find("matrix") != kNowhere || text.find("array") != kNowhere) return text;
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool doubled = text[at] == '\\' && at + 2 < text.size() && text[at + 1] == '\\' &&
                         IsAsciiLetter(text[at + 2]);
    if (!doubled) out += text[at];
  }
  return out;
}

// \begin{align*} x &= 5 \end{align*} around one line says nothing more than it.
std::string WithoutAlignment(std::string text) {
  if (text.find("\\begin{") == kNowhere && text.find("\\end{") == kNowhere) return text;
  bool aligned = false;
  for (const std::string_view name :
       {"align", "aligned", "equation", "gather", "gathered", "split"}) {
    for (const std::string_view star : {"", "*"}) {
      for (const std::string_view command : {"\\begin{", "\\end{"}) {
        std::string mark(command);
        mark += name;
        mark += star;
        mark += '}';
        if (text.find(mark) == kNowhere) continue;
        text = ReplaceAll(text, mark, " ");
        aligned = true;
      }
    }
  }
  const bool has_rows = text.find("matrix") != kNowhere || text.find("array") != kNowhere;
  return aligned && !has_rows ? ReplaceAll(text, "&", "") : text;
}

// "= 5" and "\approx 5" are what stood after a formula.
std::string_view WithoutHead(std::string_view text) {
  text = StripSpace(text);
  for (const std::string_view sign : {"=", "\\approx", "\u2248", "\\sim"}) {
    if (text.starts_with(sign)) return StripSpace(text.substr(sign.size()));
  }
  return text;
}

std::string_view WithoutTail(std::string_view text) {
  text = StripSpace(text);
  while (!text.empty()) {
    const bool row = text.ends_with("\\\\");
    const bool stop =
        text.back() == '.' || text.back() == ',' || text.back() == ';' || text.back() == ':';
    if (!row && !stop) break;
    text = StripSpace(text.substr(0, text.size() - (row ? 2 : 1)));
  }
  return text;
}

}  // namespace

std::string TidyAnswer(std::string_view latex, bool last_box_only) {
  std::string text = JoinBoxes(latex, last_box_only);
  if (text.size() > kMaxMathBytes) return text;
  text = ReplaceAll(ReplaceAll(WithoutNoise(text), "a.m.", "am"), "p.m.", "pm");
  text = WithoutAlignment(WithSingleBackslashes(WithSymbolsForWords(text)));
  return WithoutUnits(WithoutTail(WithoutHead(text)));
}

std::string_view BehindLastEqual(std::string_view text) {
  if (text.find_first_of(",;") != kNowhere) return text;
  size_t num_equals = 0;
  size_t last = kNowhere;
  for (size_t at = 0; at < text.size(); ++at) {
    const char before = at > 0 ? text[at - 1] : '\0';
    if (text[at] != '=' || before == '\\' || before == '<' || before == '!' || before == '>') {
      continue;
    }
    ++num_equals;
    last = at;
  }
  return num_equals > 1 ? text.substr(last + 1) : text;
}

std::string PlainWords(std::string_view text) {
  std::string unwrapped(text);
  for (const std::string_view command : {"\\text", "\\textbf", "\\mathrm", "\\mbox"}) {
    unwrapped = ReplaceAll(unwrapped, std::string(command) + "{", "");
  }
  std::erase_if(unwrapped, [](char c) { return c == '{' || c == '}'; });
  std::string out;
  for (const char c : unwrapped) {
    if (IsSpace(c)) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
  }
  const size_t begin = out.find_first_not_of(" .,;:!?*\"'()");
  if (begin == kNowhere) return "";
  return out.substr(begin, out.find_last_not_of(" .,;:!?*\"'()") + 1 - begin);
}

}  // namespace pace::equiv
