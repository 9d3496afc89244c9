// StreamDecoder turns ids into text as they come, and never splits a character.
//
//   StreamDecoder stream(tokenizer, /*skip_special=*/true);
//   for (const TokenId id : ids) if (auto text = stream.Feed(id)) Show(*text);
//   Show(stream.Finish());
//
// Text is held back while it ends in an unfinished character or in a run of byte
// tokens, which the next token may spoil; all that was handed out, Finish
// included, is the decode of all ids.
// Thread-safety: none.
#ifndef PACE_TEXT_TOKENIZER_STREAM_DECODER_H_
#define PACE_TEXT_TOKENIZER_STREAM_DECODER_H_

#include <optional>
#include <string>
#include <utility>

#include "text/tokenizer/tokenizer.h"

namespace pace {

class StreamDecoder {
 public:
  StreamDecoder(Tokenizer tokenizer, bool skip_special)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // The text that this id completes; none if there is nothing to show yet.
  std::optional<std::string> Feed(TokenId id);
  // What was held back; an unfinished character becomes U+FFFD. The next Feed
  // begins a new text.
  std::string Finish();

 private:
  std::string TakePending();

  Tokenizer tokenizer_;
  bool skip_special_;
  DecodeProgress progress_;
  std::string pending_;
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_STREAM_DECODER_H_
