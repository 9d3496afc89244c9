#include "text/characters.h"

#include <utf8proc.h>

#include <cstdlib>
#include <unordered_map>

#include "core/check.h"

namespace pace {
namespace {

utf8proc_category_t CategoryOf(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool Between(uint32_t code, uint32_t low, uint32_t high) {
  return code >= low && code <= high;
}

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

bool IsLetter(uint32_t code) {
  return Between(CategoryOf(code), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool IsDecimalDigit(uint32_t code) {
  return CategoryOf(code) == UTF8PROC_CATEGORY_ND;
}

bool IsWordCharacter(uint32_t code) {
  const utf8proc_category_t category = CategoryOf(code);
  return Between(category, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || code == 0x200C || code == 0x200D ||
         Between(code, 0x24B6, 0x24E9);  // circled letters are alphabetic
}

bool IsUpper(uint32_t code) {
  return CategoryOf(code) == UTF8PROC_CATEGORY_LU;
}
bool IsLower(uint32_t code) {
  return CategoryOf(code) == UTF8PROC_CATEGORY_LL;
}

bool IsPrintable(uint32_t code) {
  if (code == ' ') return true;
  const utf8proc_category_t category = CategoryOf(code);
  return category != UTF8PROC_CATEGORY_CN &&
         !Between(category, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_CO);
}

uint32_t UpperOf(uint32_t code) {
  return static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
}
uint32_t LowerOf(uint32_t code) {
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}
uint32_t TitleOf(uint32_t code) {
  return static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code)));
}

bool IsCased(uint32_t code) {
  return Between(CategoryOf(code), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LT) ||
         UpperOf(code) != code || LowerOf(code) != code;
}
bool IsCaseIgnorable(uint32_t code) {
  const utf8proc_category_t category = CategoryOf(code);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK || code == '\'' || code == '.' || code == ':' ||
         code == 0xB7 || code == 0x2019;
}

size_t BeginOfLastCharacter(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool IsPlainlyNfc(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    // Below U+0300 nothing composes; 0xCC is the lead byte of U+0300.
    if (static_cast<unsigned char>(text[at]) < 0xCC) {
      ++at;
      continue;
    }
    const CodePoint point = ReadCodePoint(text, at);
    const uint32_t code = point.code;
    const bool plain = Between(code, 0x2010, 0x2027) || Between(code, 0x3400, 0x4DBF) ||
                       Between(code, 0x4E00, 0x9FFF) || Between(code, 0xAC00, 0xD7A3) ||
                       Between(code, 0x3001, 0x3029) || Between(code, 0xFF01, 0xFF9D) ||
                       Between(code, 0x0400, 0x0482) || Between(code, 0x1F300, 0x1FAFF);
    if (!plain) return false;
    at += point.num_bytes;
  }
  return true;
}

std::string Normalize(std::string_view text, NormalForm form) {
  // utf8proc takes U+11A7 for a final consonant and composes it away; it is none,
  // and nothing composes across it.
  constexpr std::string_view kNoFinal = "\xE1\x86\xA7";
  if (const size_t at = text.find(kNoFinal); at != std::string_view::npos) {
    std::string out = Normalize(text.substr(0, at), form);
    for (size_t begin = at; begin != std::string_view::npos;) {
      out += kNoFinal;
      begin += kNoFinal.size();
      const size_t end = text.find(kNoFinal, begin);
      out += Normalize(text.substr(begin, end - begin), form);
      begin = end;
    }
    return out;
  }
  int options = UTF8PROC_STABLE;
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  options |= composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                             static_cast<utf8proc_option_t>(options));
  // It fails on ill-formed text alone, which the caller rules out.
  PACE_CHECK(size >= 0, "normalising ", text.size(), " bytes: ", utf8proc_errmsg(size));
  std::string out(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return out;
}

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
