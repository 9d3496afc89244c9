#include "terminal/word_wrap.h"

#include "core/utf8.h"

namespace pace {

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
