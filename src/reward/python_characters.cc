#include "reward/python_characters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "core/utf8.h"

namespace pace {
namespace {

struct CodeRange {
  uint32_t first;
  uint32_t last;
};

// Runs of decimal digits; each begins with a zero and counts in tens.
constexpr CodeRange kDecimalDigits[] = {
    {0x30, 0x39},       {0x660, 0x669},     {0x6F0, 0x6F9},     {0x7C0, 0x7C9},
    {0x966, 0x96F},     {0x9E6, 0x9EF},     {0xA66, 0xA6F},     {0xAE6, 0xAEF},
    {0xB66, 0xB6F},     {0xBE6, 0xBEF},     {0xC66, 0xC6F},     {0xCE6, 0xCEF},
    {0xD66, 0xD6F},     {0xDE6, 0xDEF},     {0xE50, 0xE59},     {0xED0, 0xED9},
    {0xF20, 0xF29},     {0x1040, 0x1049},   {0x1090, 0x1099},   {0x17E0, 0x17E9},
    {0x1810, 0x1819},   {0x1946, 0x194F},   {0x19D0, 0x19D9},   {0x1A80, 0x1A89},
    {0x1A90, 0x1A99},   {0x1B50, 0x1B59},   {0x1BB0, 0x1BB9},   {0x1C40, 0x1C49},
    {0x1C50, 0x1C59},   {0xA620, 0xA629},   {0xA8D0, 0xA8D9},   {0xA900, 0xA909},
    {0xA9D0, 0xA9D9},   {0xA9F0, 0xA9F9},   {0xAA50, 0xAA59},   {0xABF0, 0xABF9},
    {0xFF10, 0xFF19},   {0x104A0, 0x104A9}, {0x10D30, 0x10D39}, {0x11066, 0x1106F},
    {0x110F0, 0x110F9}, {0x11136, 0x1113F}, {0x111D0, 0x111D9}, {0x112F0, 0x112F9},
    {0x11450, 0x11459}, {0x114D0, 0x114D9}, {0x11650, 0x11659}, {0x116C0, 0x116C9},
    {0x11730, 0x11739}, {0x118E0, 0x118E9}, {0x11950, 0x11959}, {0x11C50, 0x11C59},
    {0x11D50, 0x11D59}, {0x11DA0, 0x11DA9}, {0x16A60, 0x16A69}, {0x16AC0, 0x16AC9},
    {0x16B50, 0x16B59}, {0x1D7CE, 0x1D7FF}, {0x1E140, 0x1E149}, {0x1E2F0, 0x1E2F9},
    {0x1E950, 0x1E959}, {0x1FBF0, 0x1FBF9}};

// What isdigit takes besides: superscripts, subscripts, circled, dotted.
constexpr CodeRange kOtherDigits[] = {
    {0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},
    {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
    {0x2474, 0x247C},   {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
    {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},   {0x278A, 0x2792},
    {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};

template <size_t kSize>
const CodeRange* RangeOf(const CodeRange (&ranges)[kSize], uint32_t code) {
  const CodeRange* found =
      std::lower_bound(std::begin(ranges), std::end(ranges), code,
                       [](const CodeRange& range, uint32_t value) { return range.last < value; });
  return found != std::end(ranges) && found->first <= code ? found : nullptr;
}

// Where the code point that ends before `end` begins.
size_t BeginOfCharacterBefore(std::string_view text, size_t end) {
  constexpr size_t kMaxBytes = 4;
  const size_t earliest = end > kMaxBytes ? end - kMaxBytes : 0;
  for (size_t at = earliest; at + 1 < end; ++at) {
    const CodePoint point = ReadCodePoint(text, at);
    if (point.well_formed && at + point.num_bytes == end) return at;
  }
  return end - 1;
}

}  // namespace

bool IsPythonDigitCode(uint32_t code) {
  return RangeOf(kDecimalDigits, code) != nullptr || RangeOf(kOtherDigits, code) != nullptr;
}

std::optional<int> DecimalDigitValue(uint32_t code) {
  const CodeRange* range = RangeOf(kDecimalDigits, code);
  if (range == nullptr) return std::nullopt;
  return static_cast<int>((code - range->first) % 10);
}

std::string_view LastCharacters(std::string_view text, size_t count) {
  size_t begin = text.size();
  for (size_t i = 0; i < count && begin > 0; ++i) begin = BeginOfCharacterBefore(text, begin);
  return text.substr(begin);
}

std::string_view StripSpace(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = ReadCodePoint(text, 0);
    if (!IsPythonSpace(point.code)) break;
    text.remove_prefix(point.num_bytes);
  }
  while (!text.empty()) {
    const size_t begin = BeginOfCharacterBefore(text, text.size());
    if (!IsPythonSpace(ReadCodePoint(text, begin).code)) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

bool IsAllDigits(std::string_view text) {
  if (text.empty()) return false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    if (!IsPythonDigitCode(point.code)) return false;
    at += point.num_bytes;
  }
  return true;
}

size_t FindText(std::string_view text, std::string_view word, size_t from) {
  if (from >= text.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + from, text.size() - from, word.data(), word.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

std::string ReplaceAll(std::string_view text, std::string_view before, std::string_view after) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  for (size_t found = FindText(text, before); found != std::string_view::npos;
       found = FindText(text, before, at)) {
    out += text.substr(at, found - at);
    out += after;
    at = found + before.size();
  }
  out += text.substr(at);
  return out;
}

size_t CharacterBytes(std::string_view text, size_t at) {
  return ReadCodePoint(text, at).num_bytes;
}

}  // namespace pace
