// Answers in vLLM's and OpenAI's formats: from the tokens of a response to JSON.
// Thread-safety: values and pure functions.
#ifndef PACE_SERVE_API_RESPONSE_H_
#define PACE_SERVE_API_RESPONSE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_id.h"
#include "rollout/request.h"
#include "serve/api_request.h"
#include "serve/engine_request.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

// Tokens [start, end) of a response were sampled by weights of this label.
struct WeightSpan {
  std::string version;
  int64_t start = 0;
  int64_t end = 0;
  friend bool operator==(const WeightSpan&, const WeightSpan&) = default;
};

// A response that ended, or that was aborted.
struct Generation {
  std::vector<TokenRecord> tokens{};
  std::vector<float> prompt_logprobs{};  // of the prompt's tokens but the first
  std::optional<FinishReason> reason{};  // none: aborted
  std::vector<WeightSpan> weight_versions{};
};

// What every answer to a request repeats.
struct AnswerHead {
  std::string id;       // with the prefix of its interface
  std::string model;    // as it is served
  int64_t created = 0;  // seconds since 1970
};

// "generate-tokens-", "cmpl-" or "chatcmpl-", in front of request ids.
std::string_view IdPrefix(ApiKind kind);
// "stop", "length" or "abort".
std::string_view FinishName(std::optional<FinishReason> reason);

// The answer to a request that is not streamed.
std::string AnswerText(const AnswerHead& head, const GenerateRequest& request,
                       std::span<const TokenId> prompt_tokens, const Generation& generation,
                       const PromptRules& rules);

// The events of a streamed answer, as text/event-stream.
//
//   AnswerStream stream(head, request, prompt_tokens, rules);
//   out.Send(stream.Tokens(first));   // any number of times
//   out.Send(stream.Finish(generation));
//
// Thread-safety: none.
class AnswerStream {
 public:
  // Borrows all of them.
  AnswerStream(const AnswerHead& head, const GenerateRequest& request,
               std::span<const TokenId> prompt_tokens, const PromptRules& rules);
  ~AnswerStream();

  std::string Tokens(std::span<const TokenRecord> tokens);
  // The tokens that were not sent yet, the end and "[DONE]".
  std::string Finish(const Generation& generation);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// {"error": {"message", "type", "param", "code"}}.
struct ApiError {
  int64_t code = 400;
  std::string message{};
  std::string param{};  // empty: null
};
std::string ErrorText(const ApiError& error);
// The same as the last event of a stream.
std::string ErrorEvent(const ApiError& error);

std::string TokenizeAnswer(std::span<const TokenId> tokens, const TokenizeRequest& request,
                           const PromptRules& rules);
std::string DetokenizeAnswer(std::span<const TokenId> tokens, const Tokenizer& tokenizer);

}  // namespace pace

#endif  // PACE_SERVE_API_RESPONSE_H_
