// WordWrap: text that comes in pieces, broken between words at a terminal's edge.
//
//   WordWrap wrap(80);
//   Write(wrap.Feed("Once up")); Write(wrap.Feed("on a time")); Write(wrap.Finish());
//
// A word is held back until it is whole. A word longer than a line stands on a
// line of its own and is not cut. Line ends of the text stay.
// Thread-safety: none.
#ifndef PACE_TERMINAL_WORD_WRAP_H_
#define PACE_TERMINAL_WORD_WRAP_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace pace {

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

#endif  // PACE_TERMINAL_WORD_WRAP_H_
