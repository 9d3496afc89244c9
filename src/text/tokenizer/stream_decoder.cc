#include "text/tokenizer/stream_decoder.h"

#include "core/utf8.h"

namespace pace {

std::optional<std::string> StreamDecoder::Feed(TokenId id) {
  tokenizer_.Feed(id, skip_special_, progress_, pending_);
  // U+FFFD at the end may be a character whose last bytes are still to come.
  if (pending_.empty() || EndsInReplacement(pending_)) return std::nullopt;
  return TakePending();
}

std::string StreamDecoder::Finish() {
  tokenizer_.Finish(progress_, pending_);
  progress_ = {};
  return TakePending();
}

std::string StreamDecoder::TakePending() {
  const std::string bytes = std::exchange(pending_, {});
  return ReplaceIllFormed(bytes);
}

}  // namespace pace
