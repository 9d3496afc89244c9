#include "text/tokenizer/letter_case.h"

#include <unordered_map>

#include "text/characters.h"

namespace pace {
namespace {

// Letters that become several, each followed by what it becomes: SpecialCasing of Unicode 14,
// without its conditions. Those missing from kTitle become one letter in title case.
constexpr std::string_view kUpper =
    "ßSS ŉ\u02BCN ǰJ\u030C ΐΙ\u0308\u0301 ΰΥ\u0308\u0301 ևԵՒ ẖH\u0331 ẗT\u0308 ẘW\u030A ẙY\u030A "
    "ẚA\u02BE ὐΥ\u0313 ὒΥ\u0313\u0300 ὔΥ\u0313\u0301 ὖΥ\u0313\u0342 ᾀἈΙ ᾁἉΙ ᾂἊΙ "
    "ᾃἋΙ ᾄἌΙ ᾅἍΙ ᾆἎΙ ᾇἏΙ ᾈἈΙ ᾉἉΙ ᾊἊΙ ᾋἋΙ ᾌἌΙ ᾍἍΙ ᾎἎΙ ᾏἏΙ ᾐἨΙ ᾑἩΙ ᾒἪΙ "
    "ᾓἫΙ ᾔἬΙ ᾕἭΙ ᾖἮΙ ᾗἯΙ ᾘἨΙ ᾙἩΙ ᾚἪΙ ᾛἫΙ ᾜἬΙ ᾝἭΙ ᾞἮΙ ᾟἯΙ ᾠὨΙ ᾡὩΙ ᾢὪΙ "
    "ᾣὫΙ ᾤὬΙ ᾥὭΙ ᾦὮΙ ᾧὯΙ ᾨὨΙ ᾩὩΙ ᾪὪΙ ᾫὫΙ ᾬὬΙ ᾭὭΙ ᾮὮΙ ᾯὯΙ ᾲᾺΙ ᾳΑΙ ᾴΆΙ ᾶΑ\u0342 "
    "ᾷΑ\u0342Ι ᾼΑΙ ῂῊΙ ῃΗΙ ῄΉΙ ῆΗ\u0342 ῇΗ\u0342Ι ῌΗΙ ῒΙ\u0308\u0300 ΐΙ\u0308\u0301 ῖΙ\u0342 "
    "ῗΙ\u0308\u0342 ῢΥ\u0308\u0300 ΰΥ\u0308\u0301 ῤΡ\u0313 ῦΥ\u0342 "
    "ῧΥ\u0308\u0342 ῲῺΙ ῳΩΙ ῴΏΙ ῶΩ\u0342 ῷΩ\u0342Ι ῼΩΙ ﬀFF ﬁFI ﬂFL ﬃFFI ﬄFFL ﬅST ﬆST ﬓՄՆ ﬔՄԵ ﬕՄԻ "
    "ﬖՎՆ ﬗՄԽ ";
constexpr std::string_view kTitle =
    "ßSs ŉ\u02BCN ǰJ\u030C ΐΙ\u0308\u0301 ΰΥ\u0308\u0301 ևԵւ ẖH\u0331 ẗT\u0308 ẘW\u030A ẙY\u030A "
    "ẚA\u02BE ὐΥ\u0313 ὒΥ\u0313\u0300 ὔΥ\u0313\u0301 ὖΥ\u0313\u0342 ᾲᾺ\u0345 ᾴΆ\u0345 ᾶΑ\u0342 "
    "ᾷΑ\u0342\u0345 "
    "ῂῊ\u0345 ῄΉ\u0345 ῆΗ\u0342 ῇΗ\u0342\u0345 ῒΙ\u0308\u0300 ΐΙ\u0308\u0301 ῖΙ\u0342 "
    "ῗΙ\u0308\u0342 ῢΥ\u0308\u0300 ΰΥ\u0308\u0301 ῤΡ\u0313 ῦΥ\u0342 ῧΥ\u0308\u0342 ῲῺ\u0345 "
    "ῴΏ\u0345 ῶΩ\u0342 "
    "ῷΩ\u0342\u0345 ﬀFf ﬁFi ﬂFl ﬃFfi ﬄFfl ﬅSt ﬆSt ﬓՄն ﬔՄե ﬕՄի ﬖՎն ﬗՄխ ";

constexpr uint32_t kCapitalIWithDot = 0x130;
constexpr uint32_t kCapitalSigma = 0x3A3;
constexpr uint32_t kFinalSigma = 0x3C2;
constexpr uint32_t kSharpS = 0xDF;

using SeveralLetters = std::unordered_map<uint32_t, std::string_view>;

// Of entries with a space after each.
SeveralLetters ReadTable(std::string_view entries) {
  SeveralLetters table;
  while (!entries.empty()) {
    const size_t end = entries.find(' ');
    const CodePoint letter = ReadCodePoint(entries, 0);
    table.emplace(letter.code, entries.substr(letter.num_bytes, end - letter.num_bytes));
    entries.remove_prefix(end + 1);
  }
  return table;
}

void Append(std::string& out, uint32_t code, const SeveralLetters& several,
            uint32_t (*single)(uint32_t)) {
  const auto found = code < kSharpS ? several.end() : several.find(code);
  if (found != several.end()) {
    out += found->second;
  } else {
    AppendCodePoint(out, single(code));
  }
}

void AppendUpper(std::string& out, uint32_t code) {
  static const SeveralLetters several = ReadTable(kUpper);
  Append(out, code, several, UpperOf);
}

void AppendTitle(std::string& out, uint32_t code) {
  static const SeveralLetters several = ReadTable(kTitle);
  Append(out, code, several, TitleOf);
}

// Whether the sigma at `at` ends a word: a letter with case before it and none after it, both
// over characters that case ignores.
bool IsFinalSigma(std::string_view text, size_t at) {
  bool after_letter = false;
  for (size_t before = at; before > 0 && !after_letter;) {
    before = BeginOfLastCharacter(text.substr(0, before));
    const uint32_t code = ReadCodePoint(text, before).code;
    after_letter = IsCased(code);
    if (!after_letter && !IsCaseIgnorable(code)) return false;
  }
  if (!after_letter) return false;
  for (size_t next = at + 2; next < text.size();) {
    const CodePoint point = ReadCodePoint(text, next);
    if (IsCaseIgnorable(point.code)) {
      next += point.num_bytes;
    } else {
      return !IsCased(point.code);
    }
  }
  return true;
}

// REQUIRES: `at` is where `code` stands
void AppendLower(std::string& out, uint32_t code, std::string_view text, size_t at) {
  if (code == kCapitalIWithDot) {
    out += "i\u0307";
  } else if (code == kCapitalSigma && IsFinalSigma(text, at)) {
    AppendCodePoint(out, kFinalSigma);
  } else {
    AppendCodePoint(out, LowerOf(code));
  }
}

// Calls change(out, code, at) for every character.
template <typename Change>
std::string Map(std::string_view text, Change change) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    change(out, point.code, at);
    at += point.num_bytes;
  }
  return out;
}

}  // namespace

std::string PythonUpper(std::string_view text) {
  return Map(text, [](std::string& out, uint32_t code, size_t) { AppendUpper(out, code); });
}

std::string PythonLower(std::string_view text) {
  return Map(text,
             [&](std::string& out, uint32_t code, size_t at) { AppendLower(out, code, text, at); });
}

std::string PythonCapitalize(std::string_view text) {
  return Map(text, [&](std::string& out, uint32_t code, size_t at) {
    at == 0 ? AppendTitle(out, code) : AppendLower(out, code, text, at);
  });
}

std::string PythonTitle(std::string_view text) {
  bool inside = false;
  return Map(text, [&](std::string& out, uint32_t code, size_t at) {
    inside ? AppendLower(out, code, text, at) : AppendTitle(out, code);
    inside = IsCased(code);
  });
}

std::string JinjaTitle(std::string_view text) {
  std::string out;
  size_t begin = 0;  // of the word
  const auto finish = [&](size_t end) {
    if (begin == end) return;
    const CodePoint first = ReadCodePoint(text, begin);
    AppendUpper(out, first.code);
    out += PythonLower(text.substr(begin + first.num_bytes, end - begin - first.num_bytes));
  };
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    const size_t next = at + point.num_bytes;
    const bool cuts =
        IsPythonSpace(point.code) ||
        (point.code < 0x80 &&
         std::string_view("-({[<").find(static_cast<char>(point.code)) != std::string_view::npos);
    if (cuts) {
      finish(at);
      out += text.substr(at, point.num_bytes);
      begin = next;
    }
    at = next;
  }
  finish(text.size());
  return out;
}

}  // namespace pace
