// Text for terminals: foreign text made harmless, measured in columns, wrapped; and
// small charts of characters.
//
// Thread-safety: pure functions.
#ifndef PACE_TERMINAL_TERMINAL_TEXT_H_
#define PACE_TERMINAL_TERMINAL_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

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

}  // namespace pace

#endif  // PACE_TERMINAL_TERMINAL_TEXT_H_
