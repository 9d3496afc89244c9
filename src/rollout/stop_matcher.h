// StopMatcher: has a response come to its end?
//
// Stop strings are looked for in the bytes of the tokens, as they come and before
// a decoder tidies them up (see Tokenizer::AppendBytes). They are well-formed
// UTF-8, so ill-formed bytes around them do not matter, and one may span tokens.
// Only a tail shorter than the longest stop string is kept.
//
//   StopMatcher matcher(&rules, &tokenizer);
//   for (const TokenId id : resumed) matcher.Skip(id);
//   if (std::optional<FinishReason> reason = matcher.Feed(sampled)) ...
//
// Thread-safety: none.
#ifndef PACE_ROLLOUT_STOP_MATCHER_H_
#define PACE_ROLLOUT_STOP_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/token_id.h"
#include "rollout/request.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

class StopMatcher {
 public:
  // Of a member of the group whose rules these are. Rules and tokenizer outlive it.
  // REQUIRES: a tokenizer where there are stop strings; rules valid.
  StopMatcher(const StopRules* rules, const Tokenizer* tokenizer, int64_t member = 0);

  // A token that the response had before: it ends nothing.
  void Skip(TokenId id);
  // Stop strings are looked for from here on: what was sampled before a tool's
  // tokens is over.
  void BeginTurn() { tail_.clear(); }
  // A new token. The reason, if it is the last.
  std::optional<FinishReason> Feed(TokenId id);

 private:
  // Appends the token's bytes; returns how many bytes were there before.
  size_t Append(TokenId id);
  void CutTail();

  const StopRules* rules_;
  const Tokenizer* tokenizer_;
  int64_t max_tokens_;
  size_t max_tail_ = 0;  // bytes that a stop string may have started in
  std::string tail_;
  bool is_first_ = true;
  int64_t num_tokens_ = 0;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_STOP_MATCHER_H_
