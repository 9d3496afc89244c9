// Requests to generate, as clients of vLLM and of OpenAI write them, read strictly.
//
//   Result<GenerateRequest> request = ReadGenerateRequest(ApiKind::kTokens, body);
//
// Three interfaces give the same GenerateRequest: POST /inference/v1/generate (token ids in and
// out), POST /v1/completions and POST /v1/chat/completions (text). Keys and types are vLLM's. A
// key that asks for something this server does not do is an error unless its value asks for
// nothing (null, no penalty, an empty list). An unknown key is an error, too. Errors are one line
// that names the key.
// Thread-safety: values and pure functions.
#ifndef PACE_SERVE_API_REQUEST_H_
#define PACE_SERVE_API_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "model/sampling.h"
#include "text/value.h"

namespace pace {

enum class ApiKind { kTokens, kCompletion, kChat };

struct GenerateRequest {
  ApiKind kind = ApiKind::kTokens;
  std::string request_id{};            // empty: the server chooses one
  std::optional<std::string> model{};  // none: the one that is served

  // The prompt: ids, or a text, or messages (a list of dicts, for the chat template).
  std::optional<std::vector<TokenId>> token_ids{};
  std::optional<std::string> prompt{};
  std::optional<Value> messages{};
  ValueDict template_variables{};
  bool add_generation_prompt = true;
  bool add_special_tokens = true;

  SamplingOptions sampling{};
  std::optional<uint64_t> seed{};       // none: a random one
  std::optional<int64_t> max_tokens{};  // none: as many as fit
  std::vector<TokenId> stop_token_ids{};
  std::vector<std::string> stop{};
  bool ignore_eos = false;

  bool logprobs = false;         // of the response's tokens
  bool prompt_logprobs = false;  // of the prompt's
  bool return_token_ids = false;
  bool skip_special_tokens = true;  // in texts
  bool include_stop = false;        // a stop string is part of the text

  bool stream = false;
  bool stream_usage = false;             // a last event with the usage
  bool stream_continuous_usage = false;  // the usage in every event
};

Result<GenerateRequest> ReadGenerateRequest(ApiKind kind, std::string_view body);

// POST /tokenize: text or messages; answered with PromptTokens (engine_request.h).
struct TokenizeRequest {
  GenerateRequest prompt{};
  bool return_token_strs = false;
};
Result<TokenizeRequest> ReadTokenizeRequest(std::string_view body);

// POST /detokenize.
struct DetokenizeRequest {
  std::optional<std::string> model{};
  std::vector<TokenId> tokens{};
};
Result<DetokenizeRequest> ReadDetokenizeRequest(std::string_view body);

}  // namespace pace

#endif  // PACE_SERVE_API_REQUEST_H_
