// Text for terminals: foreign text made harmless, measured in columns, wrapped; and
// small charts of characters.
//
// Thread-safety: pure functions.
#ifndef PACE_TERMINAL_TERMINAL_TEXT_H_
#define PACE_TERMINAL_TERMINAL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pace {

// Columns that a text takes; characters of East Asia take two.
int TextColumns(std::string_view text);

// Names may hold anything: control characters, what changes the direction of a text,
// ill-formed bytes, and without `unicode` all but ASCII become '?'.
std::string CleanText(std::string_view text, bool unicode);

// A clean text in lines of at most `width` columns, broken at spaces where it can be.
std::vector<std::string> WrappedText(std::string_view text, int width);

// One character per value, low to high over what is shown: at most the last `most`
// that are finite. Empty for fewer than two.
std::string Sparkline(const std::vector<double>& values, size_t most, bool unicode);

// The same values as a chart of several rows, the highest first, from 0 or the lowest.
std::vector<std::string> TallSparkline(const std::vector<double>& values, size_t most, int num_rows,
                                       bool unicode);

// "5GB", "512MiB", "100000": KB, MB, GB count thousands, KiB, MiB, GiB 1024;
// capitals do not matter. At least 1. `option` is named in errors.
Result<int64_t> ParseByteSize(std::string_view option, std::string_view text);

// A table whose columns line up.
class TextTable {
 public:
  // Cells: "3.14" with the given number of decimals; "37 %".
  static std::string Fixed(double value, int decimals);
  static std::string Percent(double share);

  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  // As many cells as the header.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // The first column to the left, the others to the right.
  std::string Render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Text that comes in pieces, broken between words at a terminal's edge:
//
//   WordWrap wrap(80);
//   Write(wrap.Feed("Once up")); Write(wrap.Feed("on a time")); Write(wrap.Finish());
//
// A word is held back until it is complete. A word longer than a line gets its own line and is
// not cut. Line ends of the text stay. Thread-safety: none.
class WordWrap {
 public:
  // Columns of a line; 0 = text passes as it is.
  explicit WordWrap(size_t width) : width_(width) {}

  // What may be shown now.
  std::string Feed(std::string_view text);
  // The word that was held back.
  std::string Finish();

 private:
  void PutWord(std::string& out);

  const size_t width_;
  size_t column_ = 0;  // after what was handed out
  std::string gap_;    // space before the word
  std::string word_;
};

}  // namespace pace

#endif  // PACE_TERMINAL_TERMINAL_TEXT_H_
