#include "reward/answer_text.h"

#include <algorithm>

#include "reward/boxed.h"
#include "reward/math_parser.h"
#include "reward/python_characters.h"
#include "reward/units.h"

namespace pace::equiv {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool IsAsciiLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

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

// The end of `word` at `at` where no letter touches it; kNone otherwise.
size_t WordAt(std::string_view text, size_t at, std::string_view word) {
  if (!StartsAt(text, at, word)) return kNone;
  const size_t end = at + word.size();
  if (at > 0 && (IsAsciiLetter(text[at - 1]) || text[at - 1] == '\\')) return kNone;
  if (end < text.size() && IsAsciiLetter(text[end])) return kNone;
  return end;
}

// The end of \text{ word } and its kin.
size_t TextCommandAt(std::string_view text, size_t at, std::string_view word) {
  if (!StartsAt(text, at, "\\t") && !StartsAt(text, at, "\\m")) return kNone;
  for (const std::string_view command : {"\\text", "\\mbox", "\\textbf", "\\mathrm", "\\textrm"}) {
    if (!StartsAt(text, at, command)) continue;
    size_t next = SkipSpace(text, at + command.size());
    if (next >= text.size() || text[next] != '{') continue;
    next = SkipSpace(text, next + 1);
    if (!StartsAt(text, next, word)) continue;
    next = SkipSpace(text, next + word.size());
    if (next < text.size() && text[next] == '}') return next + 1;
  }
  return kNone;
}

size_t EitherAt(std::string_view text, size_t at, std::string_view word) {
  const size_t end = WordAt(text, at, word);
  return end != kNone ? end : TextCommandAt(text, at, word);
}

// The end of what reads as a comma: ", and", "or", \text{ and }, {,}.
size_t SeparatorAt(std::string_view text, size_t at) {
  const size_t word = SkipSpace(text, at + (text[at] == ',' ? 1 : 0));
  for (const std::string_view joint : {"and", "or"}) {
    const size_t end = EitherAt(text, word, joint);
    if (end != kNone) return end;
  }
  const size_t open = SkipSpace(text, at);
  if (open >= text.size() || text[open] != '{') return kNone;
  const size_t comma = SkipSpace(text, open + 1);
  if (comma >= text.size() || text[comma] != ',') return kNone;
  const size_t close = SkipSpace(text, comma + 1);
  return close < text.size() && text[close] == '}' ? close + 1 : kNone;
}

// The end of a word for percent, space before it included.
size_t PercentAt(std::string_view text, size_t at) {
  const size_t word = SkipSpace(text, at);
  for (const std::string_view name : {"percentage", "percent", "pct"}) {
    const size_t end = EitherAt(text, word, name);
    if (end != kNone) return end;
  }
  return kNone;
}

size_t InfinityAt(std::string_view text, size_t at) {
  const size_t end = WordAt(text, at, "infinity");
  return end != kNone ? end : WordAt(text, at, "inf");
}

// \ldots and \cdots, a comma before them included.
size_t DotsAt(std::string_view text, size_t at) {
  const size_t command = text[at] == ',' ? at + 1 : at;
  for (const std::string_view name : {"\\ldots", "\\cdots", "\\dots"}) {
    if (StartsAt(text, command, name)) return command + name.size();
  }
  return kNone;
}

// What only decorates: dollar signs, quotes, thin spaces, "th", empty texts.
size_t NoiseAt(std::string_view text, size_t at) {
  const bool escaped = at > 0 && text[at - 1] == '\\';
  if (text[at] == '$') return at + 1;
  if ((text[at] == '"' || text[at] == '\'') && !escaped) return at + 1;
  if (text[at] != '\\') return kNone;
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
    if (end == kNone) {
      out += single[at++];
    } else {
      at = end;
    }
  }
  return out;
}

struct Replacement {
  size_t end = kNone;
  std::string_view symbol;
};

// The word at `at` that has a symbol, with its end; kNone where there is none.
Replacement SymbolAt(std::string_view text, size_t at) {
  const char c = text[at];
  const bool begins_word =
      (c == 'a' || c == 'o' || c == 'p' || c == 'i') && (at == 0 || !IsAsciiLetter(text[at - 1]));
  if (!begins_word && c != ' ' && c != ',' && c != '{' && c != '\\') return {};
  const bool escaped_space = StartsAt(text, at, "\\ ") && (at == 0 || text[at - 1] != '\\');
  for (const Replacement& rule :
       {Replacement{SeparatorAt(text, at), ","}, Replacement{PercentAt(text, at), "\\%"},
        Replacement{InfinityAt(text, at), "\\infty "}, Replacement{DotsAt(text, at), " "},
        Replacement{escaped_space ? at + 2 : kNone, " "}}) {
    if (rule.end != kNone) return rule;
  }
  return {};
}

// REQUIRES: space is ' ' alone, one at a time
std::string WithSymbolsForWords(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Replacement found = SymbolAt(text, at);
    if (found.end == kNone) {
      out += text[at++];
    } else {
      out += found.symbol;
      at = found.end;
    }
  }
  return out;
}

// "\\frac" as some sources escape it; rows of matrices keep their "\\".
std::string WithSingleBackslashes(std::string text) {
  if (text.find("matrix") != kNone || text.find("array") != kNone) return text;
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
  if (text.find("\\begin{") == kNone && text.find("\\end{") == kNone) return text;
  bool aligned = false;
  for (const std::string_view name :
       {"align", "aligned", "equation", "gather", "gathered", "split"}) {
    for (const std::string_view star : {"", "*"}) {
      for (const std::string_view command : {"\\begin{", "\\end{"}) {
        std::string mark(command);
        mark += name;
        mark += star;
        mark += '}';
        if (text.find(mark) == kNone) continue;
        text = ReplaceAll(text, mark, " ");
        aligned = true;
      }
    }
  }
  const bool has_rows = text.find("matrix") != kNone || text.find("array") != kNone;
  return aligned && !has_rows ? ReplaceAll(text, "&", "") : text;
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
  text = WithoutNoise(text);
  text = WithoutAlignment(WithSingleBackslashes(WithSymbolsForWords(text)));
  return WithoutUnits(WithoutTail(text));
}

std::string_view BehindLastEqual(std::string_view text) {
  if (text.find_first_of(",;") != kNone) return text;
  size_t num_equals = 0;
  size_t last = kNone;
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
  if (begin == kNone) return "";
  return out.substr(begin, out.find_last_not_of(" .,;:!?*\"'()") + 1 - begin);
}

}  // namespace pace::equiv
