#include "text/stream_decoder.h"

#include "core/utf8.h"

namespace pace {

std::optional<std::string> StreamDecoder::Feed(TokenId id) {
  if (tokenizer_.AppendBytes(id, skip_special_, is_first_, pending_)) is_first_ = false;
  // U+FFFD at the end may be a character whose last bytes are still to come.
  if (pending_.empty() || EndsInReplacement(pending_)) return std::nullopt;
  return Finish();
}

std::string StreamDecoder::Finish() {
  const std::string bytes = std::exchange(pending_, {});
  return ReplaceIllFormed(bytes);
}

}  // namespace pace
