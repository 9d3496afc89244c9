// From a request of a client to one of the engine: the prompt's tokens, what they leave room for,
// and the checks that need the model.
// Thread-safety: values and pure functions.
#ifndef PACE_SERVE_ENGINE_REQUEST_H_
#define PACE_SERVE_ENGINE_REQUEST_H_

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "model/model_config.h"
#include "rollout/request.h"
#include "serve/api_request.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

// What a request is rendered and checked with.
struct PromptRules {
  const ModelConfig* config = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;  // null: the model has none
  int64_t max_model_len = 0;                    // tokens of a prompt and its response
};

// The prompt's tokens.
Result<std::vector<TokenId>> PromptTokens(const GenerateRequest& request, const PromptRules& rules);

// What an engine is asked for; `seed` is used where the request has none. The group is left to
// the caller. Errors: a prompt that leaves no room, ids out of the vocabulary. For kTokens,
// max_tokens is cut to the room that the prompt leaves; the other two refuse more.
Result<GroupRequest> EngineRequest(const GenerateRequest& request,
                                   std::vector<TokenId> prompt_tokens, const PromptRules& rules,
                                   uint64_t seed);

}  // namespace pace

#endif  // PACE_SERVE_ENGINE_REQUEST_H_
