#include "core/utf8.h"

#include <algorithm>

namespace pace {
namespace {

unsigned char ByteAt(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// What may follow a lead byte: how many bytes, and the range of the first.
struct LeadRule {
  size_t num_following;
  unsigned char low;
  unsigned char high;
};

LeadRule RuleOf(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {1, 0x80, 0xBF};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};
  if (lead == 0xED) return {2, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {2, 0x80, 0xBF};
  if (lead == 0xF0) return {3, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {3, 0x80, 0xBF};
  if (lead == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

CodePoint ReadCodePoint(std::string_view text, size_t at) {
  const unsigned char lead = ByteAt(text, at);
  if (lead < 0x80) return {lead, 1, true};
  const LeadRule rule = RuleOf(lead);
  if (rule.num_following == 0) return {0xFFFD, 1, false};
  uint32_t code = lead & (0x3Fu >> rule.num_following);
  unsigned char low = rule.low;
  unsigned char high = rule.high;
  for (size_t i = 1; i <= rule.num_following; ++i) {
    if (at + i >= text.size()) return {0xFFFD, i, false};
    const unsigned char next = ByteAt(text, at + i);
    if (next < low || next > high) return {0xFFFD, i, false};
    code = (code << 6) | (next & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {code, rule.num_following + 1, true};
}

void AppendCodePoint(std::string& out, uint32_t code) {
  const auto byte = [&out](uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

bool IsWellFormed(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    if (!point.well_formed) return false;
    at += point.num_bytes;
  }
  return true;
}

std::string ReplaceIllFormed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    if (point.well_formed) {
      out.append(text, at, point.num_bytes);
    } else {
      out += kReplacementCharacter;
    }
    at += point.num_bytes;
  }
  return out;
}

bool EndsInReplacement(std::string_view text) {
  if (text.empty()) return false;
  // A lead byte never continues anything, so the last one of the text begins a
  // part of its own, whatever stands before it.
  size_t begin = text.size() - 1;
  const size_t first = text.size() - std::min<size_t>(text.size(), 4);
  while (begin > first && (ByteAt(text, begin) & 0xC0) == 0x80) --begin;
  const CodePoint last = ReadCodePoint(text, begin);
  const bool reaches_end = begin + last.num_bytes == text.size();
  return !last.well_formed || !reaches_end || last.code == 0xFFFD;
}

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += ReadCodePoint(text, at).num_bytes;
  return count;
}

size_t OffsetOfCodePoint(std::string_view text, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i < index && at < text.size(); ++i) at += ReadCodePoint(text, at).num_bytes;
  return at;
}

bool IsWhiteSpace(uint32_t code) {
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool IsPythonSpace(uint32_t code) {
  return IsWhiteSpace(code) || (code >= 0x1C && code <= 0x1F);
}

}  // namespace pace
