#include "text/characters.h"

#include <utf8proc.h>

#include <cstdlib>

#include "core/check.h"

namespace pace {
namespace {

utf8proc_category_t CategoryOf(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool Between(uint32_t code, uint32_t low, uint32_t high) {
  return code >= low && code <= high;
}

}  // namespace

bool IsWhiteSpace(uint32_t code) {
  return Between(code, 0x9, 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || Between(code, 0x2000, 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool IsPythonSpace(uint32_t code) {
  return IsWhiteSpace(code) || Between(code, 0x1C, 0x1F);
}

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

}  // namespace pace
