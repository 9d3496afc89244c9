#include "serve/api_response.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json_writer.h"
#include "core/utf8.h"
#include "serve/response_text.h"

namespace pace {
namespace {

// What vLLM writes for a log-probability that is not a number of JSON.
constexpr double kLeastLogprob = -9999;

double Clamped(float logprob) {
  return std::isnan(logprob) ? kLeastLogprob : std::max<double>(logprob, kLeastLogprob);
}

std::vector<TokenId> IdsOf(std::span<const TokenRecord> tokens) {
  std::vector<TokenId> ids;
  ids.reserve(tokens.size());
  for (const TokenRecord& token : tokens) ids.push_back(token.id);
  return ids;
}

void PutIds(JsonWriter& json, std::string_view key, std::span<const TokenId> ids) {
  json.Key(key);
  json.BeginArray();
  for (const TokenId id : ids) json.Value(id);
  json.EndArray();
}

void PutUsage(JsonWriter& json, size_t num_prompt, size_t num_tokens) {
  json.Key("usage");
  json.BeginObject();
  json.Put("prompt_tokens", num_prompt);
  json.Put("total_tokens", num_prompt + num_tokens);
  json.Put("completion_tokens", num_tokens);
  json.Put("prompt_tokens_details", nullptr);
  json.EndObject();
}

// The stop token or stop string that ended a response; null for the model's own end, the maximum
// and an abort.
void PutStopReason(JsonWriter& json, const GenerateRequest& request, const Generation& generation,
                   const PromptRules& rules) {
  json.Key("stop_reason");
  if (generation.reason == FinishReason::kStopString) {
    json.Value(MatchedStop(*rules.tokenizer, IdsOf(generation.tokens), request.stop));
    return;
  }
  if (generation.reason == FinishReason::kStopToken) {
    const TokenId last = generation.tokens.back().id;
    const std::vector<TokenId>& eos = rules.config->eos;
    const bool is_end = !request.ignore_eos && std::find(eos.begin(), eos.end(), last) != eos.end();
    if (!is_end) return json.Value(last);
  }
  json.Value(nullptr);
}

void PutFinish(JsonWriter& json, const GenerateRequest& request, const Generation* generation,
               const PromptRules& rules) {
  if (generation == nullptr) {
    json.Put("finish_reason", nullptr);
    json.Put("stop_reason", nullptr);
    return;
  }
  json.Put("finish_reason", FinishName(generation->reason));
  PutStopReason(json, request, *generation, rules);
}

void PutSpans(JsonWriter& json, std::span<const WeightSpan> spans) {
  json.Key("weight_versions");
  json.BeginArray();
  for (const WeightSpan& span : spans) {
    json.BeginObject();
    json.Put("version", span.version);
    json.Put("start", span.start);
    json.Put("end", span.end);
    json.EndObject();
  }
  json.EndArray();
}

void PutTokenLogprob(JsonWriter& json, const TokenRecord& token) {
  json.Put("token_id", token.id);
  json.Put("logprob", Clamped(token.logprob));
  json.Put("rank", nullptr);
}

// With token ids: /inference/v1/generate.
void PutTokensLogprobs(JsonWriter& json, std::span<const TokenRecord> tokens) {
  json.Key("logprobs");
  json.BeginObject();
  json.Key("content");
  json.BeginArray();
  for (const TokenRecord& token : tokens) {
    json.BeginObject();
    PutTokenLogprob(json, token);
    json.Key("top_logprobs");
    json.BeginArray();
    json.BeginObject();
    PutTokenLogprob(json, token);
    json.EndObject();
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

std::string TokenText(const Tokenizer& tokenizer, TokenId id) {
  return tokenizer.Decode({&id, 1}, /*skip_special=*/false);
}

// {tokens, token_logprobs, top_logprobs, text_offset}: /v1/completions.
void PutCompletionLogprobs(JsonWriter& json, std::span<const TokenRecord> tokens,
                           const Tokenizer& tokenizer, int64_t& offset) {
  std::vector<std::string> texts;
  for (const TokenRecord& token : tokens) texts.push_back(TokenText(tokenizer, token.id));
  json.Key("logprobs");
  json.BeginObject();
  json.Key("text_offset");
  json.BeginArray();
  for (const std::string& text : texts) {
    json.Value(offset);
    offset += static_cast<int64_t>(CountCodePoints(text));
  }
  json.EndArray();
  json.Key("token_logprobs");
  json.BeginArray();
  for (const TokenRecord& token : tokens) json.Value(Clamped(token.logprob));
  json.EndArray();
  json.Key("tokens");
  json.BeginArray();
  for (const std::string& text : texts) json.Value(text);
  json.EndArray();
  json.Key("top_logprobs");
  json.BeginArray();
  for (size_t i = 0; i < tokens.size(); ++i) {
    json.BeginObject();
    json.TextKey(texts[i]);
    json.Value(Clamped(tokens[i].logprob));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

// {content: [{token, logprob, bytes, top_logprobs}]}: /v1/chat/completions.
void PutChatLogprobs(JsonWriter& json, std::span<const TokenRecord> tokens,
                     const Tokenizer& tokenizer) {
  json.Key("logprobs");
  json.BeginObject();
  json.Key("content");
  json.BeginArray();
  for (const TokenRecord& token : tokens) {
    const std::string text = TokenText(tokenizer, token.id);
    json.BeginObject();
    json.Put("token", text);
    json.Put("logprob", Clamped(token.logprob));
    json.Key("bytes");
    json.BeginArray();
    for (const char c : text) json.Value(static_cast<int>(static_cast<unsigned char>(c)));
    json.EndArray();
    json.Key("top_logprobs");
    json.BeginArray();
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void PutLogprobs(JsonWriter& json, const GenerateRequest& request,
                 std::span<const TokenRecord> tokens, const PromptRules& rules, int64_t& offset) {
  if (!request.logprobs) return json.Put("logprobs", nullptr);
  switch (request.kind) {
    case ApiKind::kTokens:
      return PutTokensLogprobs(json, tokens);
    case ApiKind::kCompletion:
      return PutCompletionLogprobs(json, tokens, *rules.tokenizer, offset);
    case ApiKind::kChat:
      return PutChatLogprobs(json, tokens, *rules.tokenizer);
  }
}

// [null, {"ID": {"logprob", "rank", "decoded_token"}}, ...], or null where none were asked for.
// An aborted request may have fewer than its prompt has tokens.
void PutPromptLogprobs(JsonWriter& json, const GenerateRequest& request,
                       std::span<const TokenId> prompt_tokens, const Generation& generation,
                       const PromptRules& rules) {
  if (!request.prompt_logprobs) return json.Put("prompt_logprobs", nullptr);
  json.Key("prompt_logprobs");
  json.BeginArray();
  json.Value(nullptr);
  for (size_t i = 0; i < generation.prompt_logprobs.size(); ++i) {
    const TokenId id = prompt_tokens[i + 1];
    json.BeginObject();
    json.Key(Concat(id));
    json.BeginObject();
    json.Put("logprob", Clamped(generation.prompt_logprobs[i]));
    json.Put("rank", nullptr);
    json.Put("decoded_token", TokenText(*rules.tokenizer, id));
    json.EndObject();
    json.EndObject();
  }
  json.EndArray();
}

TextRules TextRulesOf(const GenerateRequest& request) {
  return {.stop = request.stop,
          .include_stop = request.include_stop,
          .skip_special_tokens = request.skip_special_tokens};
}

std::string WholeText(const GenerateRequest& request, const Generation& generation,
                      const PromptRules& rules) {
  ResponseText text(*rules.tokenizer, TextRulesOf(request));
  std::string out;
  for (const TokenRecord& token : generation.tokens) out += text.Feed(token.id);
  return out + text.Finish(generation.reason);
}

// The choice of a whole answer, or of one event (`part`, without an end unless `generation`).
class ChoiceWriter {
 public:
  ChoiceWriter(JsonWriter& json, const GenerateRequest& request,
               std::span<const TokenId> prompt_tokens, const PromptRules& rules)
      : json_(json), request_(request), prompt_tokens_(prompt_tokens), rules_(rules) {}

  void PutWhole(const Generation& generation) {
    int64_t offset = 0;
    json_.BeginObject();
    json_.Put("index", 0);
    if (request_.kind == ApiKind::kCompletion) {
      json_.Put("text", WholeText(request_, generation, rules_));
    }
    if (request_.kind == ApiKind::kChat) {
      json_.Key("message");
      json_.BeginObject();
      json_.Put("role", "assistant");
      json_.Put("content", WholeText(request_, generation, rules_));
      json_.Put("refusal", nullptr);
      json_.EndObject();
    }
    PutLogprobs(json_, request_, generation.tokens, rules_, offset);
    PutFinish(json_, request_, &generation, rules_);
    PutOwnIds(generation.tokens);
    if (request_.kind == ApiKind::kTokens) {
      json_.Put("routed_experts", nullptr);
      PutSpans(json_, generation.weight_versions);
    }
    if (request_.kind == ApiKind::kCompletion) {
      PutPromptLogprobs(json_, request_, prompt_tokens_, generation, rules_);
      PutPromptIds();
    }
    json_.EndObject();
  }

  // `generation` is null in all events but the last.
  void PutPart(std::span<const TokenRecord> tokens, const std::string& text,
               const Generation* generation, bool is_first, int64_t& offset) {
    json_.BeginObject();
    json_.Put("index", 0);
    if (request_.kind == ApiKind::kCompletion) json_.Put("text", text);
    if (request_.kind == ApiKind::kChat) {
      json_.Key("delta");
      json_.BeginObject();
      if (is_first) json_.Put("role", "assistant");
      json_.Put("content", text);
      json_.EndObject();
    }
    PutLogprobs(json_, request_, tokens, rules_, offset);
    PutFinish(json_, request_, generation, rules_);
    PutOwnIds(tokens);
    if (request_.kind == ApiKind::kTokens && generation != nullptr) {
      PutSpans(json_, generation->weight_versions);
    } else if (request_.kind == ApiKind::kTokens) {
      json_.Put("weight_versions", nullptr);
    }
    if (request_.kind == ApiKind::kCompletion && is_first) PutPromptIds();
    json_.EndObject();
  }

  void PutPromptIds() {
    if (!request_.return_token_ids) return json_.Put("prompt_token_ids", nullptr);
    PutIds(json_, "prompt_token_ids", prompt_tokens_);
  }

 private:
  // The response's ids: always with tokens, where asked for with texts.
  void PutOwnIds(std::span<const TokenRecord> tokens) {
    if (request_.kind != ApiKind::kTokens && !request_.return_token_ids) {
      return json_.Put("token_ids", nullptr);
    }
    PutIds(json_, "token_ids", IdsOf(tokens));
  }

  JsonWriter& json_;
  const GenerateRequest& request_;
  const std::span<const TokenId> prompt_tokens_;
  const PromptRules& rules_;
};

void PutHead(JsonWriter& json, const AnswerHead& head, ApiKind kind, bool streamed) {
  if (kind == ApiKind::kTokens) {
    json.Put("request_id", head.id);
    json.Put("output_mode", "tokens");
    if (streamed) return;
  } else {
    json.Put("id", head.id);
    const char* const chat = streamed ? "chat.completion.chunk" : "chat.completion";
    json.Put("object", kind == ApiKind::kChat ? chat : "text_completion");
  }
  json.Put("created", head.created);
  json.Put("model", head.model);
}

std::string_view ErrorType(int64_t code) {
  switch (code) {
    case 400:
      return "BadRequestError";
    case 404:
      return "NotFoundError";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "ServiceUnavailableError";
    default:
      return "InternalServerError";
  }
}

}  // namespace

std::string_view IdPrefix(ApiKind kind) {
  switch (kind) {
    case ApiKind::kTokens:
      return "generate-tokens-";
    case ApiKind::kCompletion:
      return "cmpl-";
    case ApiKind::kChat:
      return "chatcmpl-";
  }
  PACE_CHECK(false, "unknown interface");
}

std::string_view FinishName(std::optional<FinishReason> reason) {
  if (!reason) return "abort";
  return *reason == FinishReason::kMaxTokens ? "length" : "stop";
}

std::string AnswerText(const AnswerHead& head, const GenerateRequest& request,
                       std::span<const TokenId> prompt_tokens, const Generation& generation,
                       const PromptRules& rules) {
  std::string out;
  JsonWriter json(out);
  ChoiceWriter choice(json, request, prompt_tokens, rules);
  json.BeginObject();
  PutHead(json, head, request.kind, /*streamed=*/false);
  json.Key("choices");
  json.BeginArray();
  choice.PutWhole(generation);
  json.EndArray();
  PutUsage(json, prompt_tokens.size(), generation.tokens.size());
  if (request.kind != ApiKind::kCompletion) {
    PutPromptLogprobs(json, request, prompt_tokens, generation, rules);
    choice.PutPromptIds();
  }
  json.Put("kv_transfer_params", nullptr);
  json.EndObject();
  return out;
}

struct AnswerStream::State {
  // An event; null `generation`: not the last with tokens.
  std::string Event(std::span<const TokenRecord> tokens, const Generation* generation) {
    std::string text;
    if (request.kind != ApiKind::kTokens) {
      for (const TokenRecord& token : tokens) text += response_text.Feed(token.id);
      if (generation != nullptr) text += response_text.Finish(generation->reason);
    }
    num_sent += tokens.size();
    std::string out = "data: ";
    JsonWriter json(out);
    ChoiceWriter choice(json, request, prompt_tokens, rules);
    json.BeginObject();
    PutHead(json, head, request.kind, /*streamed=*/true);
    json.Key("choices");
    json.BeginArray();
    choice.PutPart(tokens, text, generation, is_first, offset);
    json.EndArray();
    if (request.kind != ApiKind::kCompletion && is_first && request.return_token_ids) {
      choice.PutPromptIds();
    }
    if (request.stream_continuous_usage) PutUsage(json, prompt_tokens.size(), num_sent);
    json.EndObject();
    is_first = false;
    return out + "\n\n";
  }

  std::string UsageEvent() {
    std::string out = "data: ";
    JsonWriter json(out);
    json.BeginObject();
    PutHead(json, head, request.kind, /*streamed=*/true);
    json.Key("choices");
    json.BeginArray();
    json.EndArray();
    PutUsage(json, prompt_tokens.size(), num_sent);
    json.EndObject();
    return out + "\n\n";
  }

  const AnswerHead& head;
  const GenerateRequest& request;
  const std::span<const TokenId> prompt_tokens;
  const PromptRules& rules;
  ResponseText response_text;
  size_t num_sent = 0;
  int64_t offset = 0;
  bool is_first = true;
};

AnswerStream::AnswerStream(const AnswerHead& head, const GenerateRequest& request,
                           std::span<const TokenId> prompt_tokens, const PromptRules& rules)
    : state_(new State{.head = head,
                       .request = request,
                       .prompt_tokens = prompt_tokens,
                       .rules = rules,
                       .response_text = ResponseText(*rules.tokenizer, TextRulesOf(request))}) {}

AnswerStream::~AnswerStream() = default;

std::string AnswerStream::Tokens(std::span<const TokenRecord> tokens) {
  return tokens.empty() ? "" : state_->Event(tokens, nullptr);
}

std::string AnswerStream::Finish(const Generation& generation) {
  const std::span<const TokenRecord> tokens = generation.tokens;
  std::string out =
      state_->Event(tokens.subspan(std::min(state_->num_sent, tokens.size())), &generation);
  if (state_->request.stream_usage) out += state_->UsageEvent();
  return out + "data: [DONE]\n\n";
}

std::string ErrorText(const ApiError& error) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Key("error");
  json.BeginObject();
  json.Put("message", error.message);
  json.Put("type", ErrorType(error.code));
  json.Key("param");
  error.param.empty() ? json.Value(nullptr) : json.Value(error.param);
  json.Put("code", error.code);
  json.EndObject();
  json.EndObject();
  return out;
}

std::string ErrorEvent(const ApiError& error) {
  return Concat("data: ", ErrorText(error), "\n\ndata: [DONE]\n\n");
}

std::string TokenizeAnswer(std::span<const TokenId> tokens, const TokenizeRequest& request,
                           const PromptRules& rules) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("count", tokens.size());
  json.Put("max_model_len", rules.max_model_len);
  PutIds(json, "tokens", tokens);
  json.Key("token_strs");
  if (request.return_token_strs) {
    json.BeginArray();
    for (const TokenId id : tokens) json.Value(TokenText(*rules.tokenizer, id));
    json.EndArray();
  } else {
    json.Value(nullptr);
  }
  json.EndObject();
  return out;
}

std::string DetokenizeAnswer(std::span<const TokenId> tokens, const Tokenizer& tokenizer) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("prompt", tokenizer.Decode(tokens, /*skip_special=*/false));
  json.EndObject();
  return out;
}

}  // namespace pace
