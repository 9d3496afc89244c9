// The text of a response as OpenAI's interfaces give it: without the token that ended it, cut at
// the stop string that ended it.
//
//   ResponseText text(tokenizer, rules);
//   for (const TokenId id : ids) out += text.Feed(id);   // as far as it is settled
//   out += text.Finish(FinishReason::kStopString);
//
// While a stop string may yet be completed its beginning is held back, and a character is never
// split, so what was handed out, Finish included, is the text of the whole response.
// Thread-safety: none.
#ifndef PACE_SERVE_RESPONSE_TEXT_H_
#define PACE_SERVE_RESPONSE_TEXT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/token_id.h"
#include "rollout/request.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

struct TextRules {
  std::vector<std::string> stop{};
  bool include_stop = false;  // what ended the response is part of its text
  bool skip_special_tokens = true;
};

class ResponseText {
 public:
  ResponseText(const Tokenizer& tokenizer, TextRules rules);

  std::string Feed(TokenId id);
  // `reason`: none where the response was aborted.
  std::string Finish(std::optional<FinishReason> reason);

 private:
  std::string TakeSettled(size_t num_held);

  const TextRules rules_;
  StreamDecoder decoder_;
  size_t max_held_ = 0;          // bytes that may be the beginning of a stop string
  std::optional<TokenId> last_;  // not decoded yet: it may be a stop token
  std::string pending_;
};

// The stop string that the last of these tokens completed: the first of `stop` that does.
std::optional<std::string> MatchedStop(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                       std::span<const std::string> stop);

}  // namespace pace

#endif  // PACE_SERVE_RESPONSE_TEXT_H_
