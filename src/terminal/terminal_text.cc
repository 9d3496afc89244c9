#include "terminal/terminal_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/utf8.h"

namespace pace {
namespace {

bool IsWide(uint32_t code) {
  constexpr std::array<std::pair<uint32_t, uint32_t>, 9> kWide = {{{0x1100, 0x115F},
                                                                   {0x2E80, 0xA4CF},
                                                                   {0xA960, 0xA97F},
                                                                   {0xAC00, 0xD7A3},
                                                                   {0xF900, 0xFAFF},
                                                                   {0xFE10, 0xFE6F},
                                                                   {0xFF00, 0xFFE6},
                                                                   {0x1F000, 0x1FAFF},
                                                                   {0x20000, 0x3FFFD}}};
  return std::any_of(kWide.begin(), kWide.end(), [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

bool IsControl(uint32_t code) {
  // C0, C1, and what changes the direction or the lines of a text.
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x2069) || code == 0xFEFF;
}

// The bytes of a clean text that fit into so many columns; at least one character.
size_t FittingBytes(std::string_view text, int columns) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t size = ReadCodePoint(text, at).num_bytes;
    const int width = TextColumns(text.substr(at, size));
    if (width > columns && at > 0) break;
    columns -= width;
    at += size;
  }
  return at;
}

// The last of the finite ones.
std::vector<double> Shown(const std::vector<double>& values, size_t most) {
  std::vector<double> shown;
  for (const double value : values) {
    if (std::isfinite(value)) shown.push_back(value);
  }
  if (shown.size() > most) shown.erase(shown.begin(), shown.end() - static_cast<ptrdiff_t>(most));
  return shown;
}

}  // namespace

int TextColumns(std::string_view text) {
  int columns = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    columns += IsWide(point.code) ? 2 : 1;
    at += point.num_bytes;
  }
  return columns;
}

std::string CleanText(std::string_view text, bool unicode) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    const bool shown =
        point.well_formed && !IsControl(point.code) && (unicode || point.code < 0x80);
    out += shown ? text.substr(at, point.num_bytes) : "?";
    at += point.num_bytes;
  }
  return out;
}

std::vector<std::string> WrappedText(std::string_view text, int width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t size = FittingBytes(text, std::max(1, width));
    if (size < text.size() && text[size] != ' ') {
      const size_t space = text.substr(0, size).rfind(' ');
      if (space != std::string_view::npos && space > 0) size = space;
    }
    lines.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  return lines;
}

std::string Sparkline(const std::vector<double>& values, size_t most, bool unicode) {
  constexpr std::array<std::string_view, 8> kBlocks = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                       "\u2585", "\u2586", "\u2587", "\u2588"};
  constexpr std::string_view kAscii = "_.-~=+*#";
  const std::vector<double> shown = Shown(values, most);
  if (shown.size() < 2) return "";
  const auto [lo, hi] = std::minmax_element(shown.begin(), shown.end());
  const double low = *lo, range = *hi - *lo;
  std::string out;
  for (const double value : shown) {
    const double height = range > 0 && std::isfinite(range) ? (value - low) / range : 0.5;
    const auto level = static_cast<size_t>(std::clamp(height * 7.999, 0.0, 7.0));
    if (unicode) {
      out += kBlocks[level];
    } else {
      out += kAscii[level];
    }
  }
  return out;
}

std::vector<std::string> TallSparkline(const std::vector<double>& values, size_t most, int num_rows,
                                       bool unicode) {
  constexpr std::array<std::string_view, 9> kBlocks = {
      " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
  constexpr std::array<std::string_view, 9> kAscii = {" ", ".", ".", ":", ":", "|", "|", "#", "#"};
  const std::vector<double> shown = Shown(values, most);
  if (shown.size() < 2) return {};
  const auto [lo, hi] = std::minmax_element(shown.begin(), shown.end());
  const double low = std::min(0.0, *lo), range = *hi - low;
  std::vector<std::string> rows(static_cast<size_t>(num_rows));
  for (const double value : shown) {
    const double share = range > 0 && std::isfinite(range) ? (value - low) / range : 0.5;
    // At least one eighth: a zero is a value, too.
    const auto eighths = std::max<int64_t>(1, std::llround(share * 8 * num_rows));
    for (int row = 0; row < num_rows; ++row) {
      const int64_t below = 8 * (num_rows - 1 - row);
      const auto level = static_cast<size_t>(std::clamp<int64_t>(eighths - below, 0, 8));
      rows[static_cast<size_t>(row)] += unicode ? kBlocks[level] : kAscii[level];
    }
  }
  return rows;
}

}  // namespace pace
