#include "terminal/terminal_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "core/printable.h"
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

// The bytes of a clean text that fit into `columns` columns; at least one character.
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
std::vector<double> Thinned(const std::vector<double>& values, size_t most) {
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
  const std::vector<double> shown = Thinned(values, most);
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
  const std::vector<double> shown = Thinned(values, most);
  if (shown.size() < 2) return {};
  const auto [lo, hi] = std::minmax_element(shown.begin(), shown.end());
  const double low = std::min(0.0, *lo), range = *hi - low;
  std::vector<std::string> rows(static_cast<size_t>(num_rows));
  for (const double value : shown) {
    const double share = range > 0 && std::isfinite(range) ? (value - low) / range : 0.5;
    // At least one eighth: a zero is a value, too.
    const auto eighths = std::max<int64_t>(1, std::llround(share * 8 * num_rows));
    for (int row = 0; row < num_rows; ++row) {
      const int64_t below = int64_t{8} * (num_rows - 1 - row);
      const auto level = static_cast<size_t>(std::clamp<int64_t>(eighths - below, 0, 8));
      rows[static_cast<size_t>(row)] += unicode ? kBlocks[level] : kAscii[level];
    }
  }
  return rows;
}

Result<int64_t> ParseByteSize(std::string_view option, std::string_view text) {
  constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>({
      {"", 1},
      {"b", 1},
      {"kb", 1e3},
      {"mb", 1e6},
      {"gb", 1e9},
      {"tb", 1e12},
      {"kib", 1024.0},
      {"mib", 1024.0 * 1024},
      {"gib", 1024.0 * 1024 * 1024},
      {"tib", 1024.0 * 1024 * 1024 * 1024},
  });
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string unit(end, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* const found = std::find_if(kUnits.begin(), kUnits.end(),
                                         [&](const auto& entry) { return entry.first == unit; });
  const double size = found == kUnits.end() ? 0 : std::floor(number * found->second);
  if (error != std::errc() || !(size >= 1) || size > 1e18) {
    return InvalidArgument(option, " ", Printable(text), ": must be a size, such as 500MB or 2GiB");
  }
  return static_cast<int64_t>(size);
}

std::string TextTable::Fixed(double value, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", decimals, value);
  return buffer;
}

std::string TextTable::Percent(double share) {
  return Fixed(share * 100, 0) + " %";
}

std::string TextTable::Render() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      out += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    out += '\n';
  }
  return out;
}

std::string WordWrap::Feed(std::string_view text) {
  if (width_ == 0) return std::string(text);
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\n') {
      word_ += c;
      continue;
    }
    PutWord(out);
    if (c != '\n') {
      gap_ += c;
      continue;
    }
    gap_.clear();
    out += c;
    column_ = 0;
  }
  return out;
}

std::string WordWrap::Finish() {
  std::string out;
  PutWord(out);
  return out;
}

void WordWrap::PutWord(std::string& out) {
  if (word_.empty()) return;
  const size_t length = CountCodePoints(word_);
  if (column_ > 0 && column_ + gap_.size() + length > width_) {
    out += '\n';
    column_ = 0;
  } else {
    out += gap_;
    column_ += gap_.size();
  }
  out += word_;
  column_ += length;
  gap_.clear();
  word_.clear();
}

}  // namespace pace
