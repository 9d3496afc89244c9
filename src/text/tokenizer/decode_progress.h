// DecodeProgress: how far a decode has come, for Tokenizer::Feed.
#ifndef PACE_TEXT_TOKENIZER_DECODE_PROGRESS_H_
#define PACE_TEXT_TOKENIZER_DECODE_PROGRESS_H_

#include <cstdint>
#include <string>

namespace pace {

struct DecodeProgress {
  bool has_token = false;
  bool has_text = false;     // nothing is stripped any more
  int64_t num_stripped = 0;  // characters
  std::string bytes;         // of the run of byte tokens that is not over
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_DECODE_PROGRESS_H_
