#include "serve/api_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/json_scanner.h"
#include "core/printable.h"
#include "core/utf8.h"
#include "text/python_text.h"

namespace pace {
namespace {

constexpr int64_t kMaxTokenId = std::numeric_limits<TokenId>::max();
constexpr double kMaxReal = std::numeric_limits<double>::max();
constexpr size_t kMaxStopStrings = 64;
constexpr size_t kMaxIdBytes = 1024;
// What OpenAI's completions generate where a request does not say.
constexpr int64_t kDefaultCompletionTokens = 16;

// A key of vLLM's that this server accepts only where its value asks for nothing. null, [] and
// {} always do.
struct UnsupportedKey {
  std::string_view key;
  std::optional<double> number = std::nullopt;  // that asks for nothing
  std::optional<bool> flag = std::nullopt;
};

// Of sampling_params and, in the other two interfaces, of the request itself.
constexpr UnsupportedKey kUnsupportedSampling[] = {
    {.key = "n", .number = 1},
    {.key = "best_of", .number = 1},
    {.key = "presence_penalty", .number = 0},
    {.key = "frequency_penalty", .number = 0},
    {.key = "repetition_penalty", .number = 1},
    {.key = "length_penalty", .number = 1},
    {.key = "min_tokens", .number = 0},
    {.key = "use_beam_search", .flag = false},
    {.key = "watermarking", .flag = false},
    {.key = "logit_bias"},
    {.key = "allowed_token_ids"},
    {.key = "bad_words"},
    {.key = "structured_outputs"},
    {.key = "guided_json"},
    {.key = "guided_regex"},
    {.key = "guided_choice"},
    {.key = "guided_grammar"},
    {.key = "logprob_token_ids"},
    {.key = "prompt_logprob_token_ids"},
    {.key = "prompt_logprob_start"},
    {.key = "flat_logprobs", .flag = false},
    {.key = "thinking_token_budget", .number = -1},
    {.key = "repetition_detection"},
    {.key = "extra_args"},
    {.key = "vllm_xargs"},
    {.key = "routed_experts_prompt_start", .number = 0},
    {.key = "trace_decode_token_ids"},
    {.key = "spaces_between_special_tokens", .flag = true},
    {.key = "stream_interval", .number = 1},
    {.key = "truncate_prompt_tokens"},
    {.key = "truncation_side"},
};
constexpr UnsupportedKey kUnsupportedInAll[] = {
    {.key = "priority", .number = 0},
    {.key = "kv_transfer_params"},
    {.key = "ec_transfer_params"},
};
constexpr UnsupportedKey kUnsupportedInTokens[] = {
    {.key = "token_offsets"},           {.key = "features"},
    {.key = "content_parts"},           {.key = "reasoning_ended"},
    {.key = "reasoning_parser_kwargs"},
};
constexpr UnsupportedKey kUnsupportedInText[] = {
    {.key = "echo", .flag = false},
    {.key = "suffix"},
    {.key = "prompt_embeds"},
    {.key = "return_tokens_as_token_ids", .flag = false},
    {.key = "return_token_offsets", .flag = false},
    {.key = "return_prompt_text", .flag = false},
    {.key = "return_mm_kwargs"},
    {.key = "tools"},
    {.key = "functions"},
    {.key = "function_call"},
    {.key = "parallel_tool_calls", .flag = true},
    {.key = "reasoning_effort"},
    {.key = "include_reasoning", .flag = true},
    {.key = "documents"},
    {.key = "chat_template"},
    {.key = "media_io_kwargs"},
    {.key = "mm_processor_kwargs"},
    {.key = "continue_final_message", .flag = false},
    {.key = "modalities"},
    {.key = "audio"},
    {.key = "prediction"},
    {.key = "store", .flag = false},
    {.key = "web_search_options"},
};

template <size_t N>
const UnsupportedKey* Find(const UnsupportedKey (&keys)[N], std::string_view key) {
  const auto at = std::find_if(std::begin(keys), std::end(keys),
                               [key](const UnsupportedKey& known) { return known.key == key; });
  return at == std::end(keys) ? nullptr : at;
}

// Consumes a value that asks for nothing; any other fails.
void TakeNothing(JsonScanner& scan, const UnsupportedKey& unsupported) {
  constexpr std::string_view kRule = "is not supported by this server (leave it out)";
  switch (scan.NextKind()) {
    case JsonScanner::Kind::kNull:
      scan.TakeNull();
      return;
    case JsonScanner::Kind::kNumber: {
      double number = 0;
      if (scan.Real(-kMaxReal, kMaxReal, "", number) && number != unsupported.number) {
        scan.Fail(unsupported.number
                      ? Concat("only ", *unsupported.number, " is supported by this server")
                      : std::string(kRule));
      }
      return;
    }
    case JsonScanner::Kind::kBool: {
      bool flag = false;
      if (scan.Bool(flag) && flag != unsupported.flag) scan.Fail(kRule);
      return;
    }
    case JsonScanner::Kind::kArray:
      scan.EnterArray();
      if (scan.NextItem()) scan.Fail(kRule);
      return;
    case JsonScanner::Kind::kObject:
      scan.EnterObject();
      if (scan.NextKey()) scan.Fail(kRule);
      return;
    case JsonScanner::Kind::kText:
      scan.Fail(kRule);
      return;
  }
}

// Whether the key was one of these; its value is consumed then.
template <size_t N>
bool TakeUnsupported(JsonScanner& scan, const UnsupportedKey (&keys)[N]) {
  const UnsupportedKey* const key = Find(keys, scan.key());
  if (key != nullptr) TakeNothing(scan, *key);
  return key != nullptr;
}

void ReadIds(JsonScanner& scan, std::vector<TokenId>& out) {
  out.clear();
  scan.EnterArray();
  while (scan.NextItem()) {
    int64_t id = 0;
    if (scan.Integer(0, kMaxTokenId, "", id)) out.push_back(static_cast<TokenId>(id));
  }
}

// A value that may be null, which leaves `out` as it is.
void ReadBool(JsonScanner& scan, bool& out) {
  if (!scan.TakeNull()) scan.Bool(out);
}
void ReadReal(JsonScanner& scan, double minimum, double maximum, double& out) {
  if (!scan.TakeNull()) scan.Real(minimum, maximum, "", out);
}
void ReadText(JsonScanner& scan, std::optional<std::string>& out) {
  out.reset();
  if (!scan.TakeNull()) scan.Text(out.emplace());
}
void ReadSeed(JsonScanner& scan, std::optional<uint64_t>& out) {
  out.reset();
  int64_t seed = -1;
  if (scan.TakeNull()) return;
  scan.Integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), "", seed);
  if (seed != -1) out = static_cast<uint64_t>(seed);
}
void ReadMaxTokens(JsonScanner& scan, std::optional<int64_t>& out) {
  out.reset();
  if (!scan.TakeNull()) scan.Integer(1, std::numeric_limits<int32_t>::max(), "", out.emplace());
}
// A text without a meaning for this server.
void SkipText(JsonScanner& scan, size_t max_bytes) {
  std::string text;
  if (!scan.TakeNull() && scan.Text(text) && text.size() > max_bytes) {
    scan.Fail(Concat("must be at most ", max_bytes, " bytes"));
  }
}

void ReadStop(JsonScanner& scan, std::vector<std::string>& out) {
  out.clear();
  if (scan.TakeNull()) return;
  if (scan.NextKind() == JsonScanner::Kind::kText) {
    scan.Text(out.emplace_back());
  } else {
    scan.EnterArray();
    while (scan.NextItem()) scan.Text(out.emplace_back());
  }
  if (out.size() > kMaxStopStrings) scan.Fail(Concat("must have at most ", kMaxStopStrings));
  for (const std::string& text : out) {
    if (text.empty() || !IsWellFormed(text)) scan.Fail("must be UTF-8 and not empty");
  }
}

// Alternatives of a token have a log-probability that this server does not compute: `most` is 0,
// or 1 where the interface counts the sampled token as one.
void ReadNumLogprobs(JsonScanner& scan, int64_t most, bool& out) {
  out = false;
  int64_t count = 0;
  if (scan.TakeNull()) return;
  out = scan.Integer(0, most, "of the tokens themselves; alternatives are not supported", count);
}

void ReadStreamOptions(JsonScanner& scan, GenerateRequest& request) {
  if (scan.TakeNull()) return;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "include_usage") {
      ReadBool(scan, request.stream_usage);
    } else if (scan.key() == "continuous_usage_stats") {
      ReadBool(scan, request.stream_continuous_usage);
    } else {
      scan.FailUnknownKey();
    }
  }
}

// What the three interfaces share in how tokens are sampled. False: another key.
bool ReadSamplingKey(JsonScanner& scan, GenerateRequest& request) {
  const std::string_view key = scan.key();
  if (key == "temperature") {
    ReadReal(scan, 0, 2, request.sampling.temperature);
  } else if (key == "top_p") {
    ReadReal(scan, 0, 1, request.sampling.top_p);
    if (request.sampling.top_p <= 0) scan.Fail("must be > 0");
  } else if (key == "top_k") {
    int64_t top_k = 0;
    if (!scan.TakeNull()) scan.Integer(-1, kMaxTokenId, "0 = all", top_k);
    request.sampling.top_k = std::max<int64_t>(top_k, 0);
  } else if (key == "min_p") {
    ReadReal(scan, 0, 1, request.sampling.min_p);
  } else if (key == "seed") {
    ReadSeed(scan, request.seed);
  } else if (key == "stop") {
    ReadStop(scan, request.stop);
  } else if (key == "stop_token_ids") {
    request.stop_token_ids.clear();
    if (!scan.TakeNull()) ReadIds(scan, request.stop_token_ids);
  } else if (key == "ignore_eos") {
    ReadBool(scan, request.ignore_eos);
  } else if (key == "prompt_logprobs") {
    ReadNumLogprobs(scan, 0, request.prompt_logprobs);
  } else if (key == "skip_special_tokens") {
    ReadBool(scan, request.skip_special_tokens);
  } else if (key == "include_stop_str_in_output") {
    ReadBool(scan, request.include_stop);
  } else {
    return TakeUnsupported(scan, kUnsupportedSampling);
  }
  return true;
}

// What the three share beside sampling. False: another key.
bool ReadCommonKey(JsonScanner& scan, GenerateRequest& request) {
  const std::string_view key = scan.key();
  if (key == "request_id") {
    std::optional<std::string> id;
    ReadText(scan, id);
    request.request_id = std::move(id).value_or("");
    if (request.request_id.size() > kMaxIdBytes) {
      scan.Fail(Concat("must be at most ", kMaxIdBytes, " bytes"));
    }
  } else if (key == "model") {
    ReadText(scan, request.model);
  } else if (key == "stream") {
    ReadBool(scan, request.stream);
  } else if (key == "stream_options") {
    ReadStreamOptions(scan, request);
  } else if (key == "return_token_ids") {
    ReadBool(scan, request.return_token_ids);
  } else if (key == "cache_salt") {
    // Requests share no cache, so every one is as if salted.
    SkipText(scan, kMaxIdBytes);
  } else {
    return TakeUnsupported(scan, kUnsupportedInAll);
  }
  return true;
}

void ReadSamplingParams(JsonScanner& scan, GenerateRequest& request, bool& detokenize) {
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "max_tokens") {
      ReadMaxTokens(scan, request.max_tokens);
    } else if (scan.key() == "logprobs") {
      ReadNumLogprobs(scan, 1, request.logprobs);
    } else if (scan.key() == "detokenize") {
      ReadBool(scan, detokenize);
    } else if (scan.key() == "skip_reading_prefix_cache") {
      bool ignored = false;  // there is no prefix cache between requests
      ReadBool(scan, ignored);
    } else if (!ReadSamplingKey(scan, request)) {
      scan.FailUnknownKey();
    }
  }
}

Status ReadTokensRequest(std::string_view body, GenerateRequest& request) {
  bool detokenize = true;
  bool has_params = false;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "token_ids") {
      ReadIds(scan, request.token_ids.emplace());
    } else if (scan.key() == "sampling_params") {
      has_params = true;
      ReadSamplingParams(scan, request, detokenize);
    } else if (scan.key() == "output_mode") {
      std::string mode;
      if (scan.Text(mode) && mode != "tokens") {
        scan.FailValue(Printable(mode), "must be tokens", "");
      }
    } else if (!ReadCommonKey(scan, request) && !TakeUnsupported(scan, kUnsupportedInTokens)) {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!request.token_ids) return InvalidArgument("token_ids: field required");
  if (!has_params) return InvalidArgument("sampling_params: field required");
  if (!request.stop.empty() && !detokenize) {
    return InvalidArgument("sampling_params.stop: needs detokenize = true");
  }
  return Status::Ok();
}

// A text, ids, or a list of one of these.
void ReadPrompt(JsonScanner& scan, GenerateRequest& request) {
  constexpr std::string_view kRule = "must be one text or one list of token ids";
  request.prompt.reset();
  request.token_ids.reset();
  if (scan.NextKind() == JsonScanner::Kind::kText) {
    scan.Text(request.prompt.emplace());
    return;
  }
  scan.EnterArray();
  while (scan.NextItem()) {
    const JsonScanner::Kind kind = scan.NextKind();
    if (kind == JsonScanner::Kind::kNumber && !request.prompt) {
      int64_t id = 0;
      if (!request.token_ids) request.token_ids.emplace();
      if (scan.Integer(0, kMaxTokenId, "", id)) {
        request.token_ids->push_back(static_cast<TokenId>(id));
      }
      continue;
    }
    if (request.prompt || request.token_ids) {
      scan.Fail(kRule);
    } else if (kind == JsonScanner::Kind::kText) {
      scan.Text(request.prompt.emplace());
    } else {
      ReadIds(scan, request.token_ids.emplace());
      if (scan.ok() && scan.NextItem()) scan.Fail(kRule);
      return;
    }
  }
}

// {"type": "text"} or null.
void ReadResponseFormat(JsonScanner& scan) {
  if (scan.TakeNull()) return;
  scan.EnterObject();
  while (scan.NextKey()) {
    std::string type;
    if (scan.key() == "type") {
      if (scan.Text(type) && type != "text") {
        scan.FailValue(Printable(type), "only text is supported by this server", "");
      }
    } else {
      scan.Fail("is not supported by this server");
    }
  }
}

// Keys that change nothing here, as in vLLM, or whose values ask for nothing.
bool ReadTextKey(JsonScanner& scan, GenerateRequest& request) {
  const std::string_view key = scan.key();
  if (key == "user" || key == "session_id" || key == "safety_identifier" ||
      key == "prompt_cache_key") {
    SkipText(scan, kMaxIdBytes);
  } else if (key == "metadata") {
    scan.Skip();
  } else if (key == "service_tier" || key == "tool_choice" || key == "mm_payload") {
    std::string text;
    const bool is_tool_choice = key == "tool_choice";
    if (!scan.TakeNull() && scan.Text(text) && is_tool_choice && text != "none" && text != "auto") {
      scan.FailValue(Printable(text), "must be none (tools are not supported)", "");
    }
  } else if (key == "response_format") {
    ReadResponseFormat(scan);
  } else if (key == "add_special_tokens") {
    ReadBool(scan, request.add_special_tokens);
  } else {
    return TakeUnsupported(scan, kUnsupportedInText);
  }
  return true;
}

Status ReadCompletionRequest(std::string_view body, GenerateRequest& request) {
  request.max_tokens = kDefaultCompletionTokens;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "prompt") {
      ReadPrompt(scan, request);
    } else if (scan.key() == "max_tokens") {
      ReadMaxTokens(scan, request.max_tokens);
      if (!request.max_tokens) request.max_tokens = kDefaultCompletionTokens;
    } else if (scan.key() == "logprobs") {
      ReadNumLogprobs(scan, 0, request.logprobs);
    } else if (!ReadSamplingKey(scan, request) && !ReadCommonKey(scan, request) &&
               !ReadTextKey(scan, request)) {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!request.token_ids && !request.prompt) return InvalidArgument("prompt: field required");
  if (request.prompt && request.prompt->empty()) {
    return InvalidArgument("prompt: must not be empty");
  }
  return Status::Ok();
}

// Texts of parts are joined; other parts (images) are refused.
Result<Value> ContentText(const Value& content, const std::string& where) {
  if (!content.is_list()) {
    if (content.is_text() || content.is_none()) return content;
    return InvalidArgument(where, ": must be a text or a list of text parts");
  }
  std::string text;
  for (size_t i = 0; i < content.list().size(); ++i) {
    const Value& part = content.list()[i];
    const Value* const type = part.is_dict() ? part.dict().Find("type") : nullptr;
    const Value* const said = part.is_dict() ? part.dict().Find("text") : nullptr;
    const bool is_text = type != nullptr && type->is_text() && type->text() == "text";
    if (!is_text || said == nullptr || !said->is_text()) {
      return InvalidArgument(where, "[", i, "]: must be {\"type\": \"text\", \"text\": ...}");
    }
    if (i > 0) text += '\n';
    text += said->text();
  }
  return Value(std::move(text));
}

Result<Value> ReadMessages(const Value& messages) {
  if (!messages.is_list() || messages.list().empty()) {
    return InvalidArgument("messages: must be a list of at least one message");
  }
  ValueList read;
  for (size_t i = 0; i < messages.list().size(); ++i) {
    const std::string where = Concat("messages[", i, "]");
    const Value& message = messages.list()[i];
    const Value* const role = message.is_dict() ? message.dict().Find("role") : nullptr;
    if (role == nullptr || !role->is_text()) return InvalidArgument(where, ".role: must be a text");
    ValueDict changed;
    for (const auto& [key, value] : message.dict().entries()) {
      if (key != "content") {
        changed.Put(key, value);
        continue;
      }
      PACE_ASSIGN_OR_RETURN(Value content, ContentText(value, where + ".content"));
      changed.Put(key, std::move(content));
    }
    read.push_back(Value::MakeDict(std::move(changed)));
  }
  return Value::MakeList(std::move(read));
}

// messages and chat_template_kwargs, which a scanner passed over.
Status TakeChatValues(std::string_view body, GenerateRequest& request) {
  PACE_ASSIGN_OR_RETURN(const Value value, ParsePythonJson(body));
  const Value* const messages = value.dict().Find("messages");
  if (messages != nullptr) {
    PACE_ASSIGN_OR_RETURN(request.messages, ReadMessages(*messages));
  }
  const Value* const variables = value.dict().Find("chat_template_kwargs");
  if (variables == nullptr || variables->is_none()) return Status::Ok();
  if (!variables->is_dict()) return InvalidArgument("chat_template_kwargs: must be an object");
  request.template_variables = variables->dict();
  return Status::Ok();
}

Status ReadChatRequest(std::string_view body, GenerateRequest& request) {
  request.add_special_tokens = false;  // the template writes them
  bool has_messages = false;
  std::optional<int64_t> max_completion_tokens;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "messages" || scan.key() == "chat_template_kwargs") {
      has_messages = has_messages || scan.key() == "messages";
      scan.Skip();
    } else if (scan.key() == "max_tokens") {
      ReadMaxTokens(scan, request.max_tokens);
    } else if (scan.key() == "max_completion_tokens") {
      ReadMaxTokens(scan, max_completion_tokens);
    } else if (scan.key() == "logprobs") {
      request.logprobs = false;
      ReadBool(scan, request.logprobs);
    } else if (scan.key() == "top_logprobs") {
      bool ignored = false;
      ReadNumLogprobs(scan, 0, ignored);
    } else if (scan.key() == "add_generation_prompt") {
      ReadBool(scan, request.add_generation_prompt);
    } else if (!ReadSamplingKey(scan, request) && !ReadCommonKey(scan, request) &&
               !ReadTextKey(scan, request)) {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!has_messages) return InvalidArgument("messages: field required");
  if (max_completion_tokens) request.max_tokens = max_completion_tokens;
  return TakeChatValues(body, request);
}

}  // namespace

Result<GenerateRequest> ReadGenerateRequest(ApiKind kind, std::string_view body) {
  GenerateRequest request{.kind = kind};
  switch (kind) {
    case ApiKind::kTokens:
      PACE_RETURN_IF_ERROR(ReadTokensRequest(body, request));
      break;
    case ApiKind::kCompletion:
      PACE_RETURN_IF_ERROR(ReadCompletionRequest(body, request));
      break;
    case ApiKind::kChat:
      PACE_RETURN_IF_ERROR(ReadChatRequest(body, request));
      break;
  }
  const bool asks_usage = request.stream_usage || request.stream_continuous_usage;
  if (asks_usage && !request.stream) {
    return InvalidArgument("stream_options: needs stream = true");
  }
  if (request.prompt_logprobs && request.stream) {
    return InvalidArgument("prompt_logprobs: are not available with stream = true");
  }
  if (request.sampling.greedy()) request.sampling = {.temperature = 0};
  return request;
}

Result<TokenizeRequest> ReadTokenizeRequest(std::string_view body) {
  TokenizeRequest request;
  bool has_messages = false;
  bool special = true;
  bool says_special = false;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "prompt") {
      scan.Text(request.prompt.prompt.emplace());
    } else if (scan.key() == "messages" || scan.key() == "chat_template_kwargs") {
      has_messages = has_messages || scan.key() == "messages";
      scan.Skip();
    } else if (scan.key() == "model") {
      ReadText(scan, request.prompt.model);
    } else if (scan.key() == "add_special_tokens") {
      says_special = scan.Bool(special);
    } else if (scan.key() == "add_generation_prompt") {
      ReadBool(scan, request.prompt.add_generation_prompt);
    } else if (scan.key() == "return_token_strs") {
      ReadBool(scan, request.return_token_strs);
    } else if (!TakeUnsupported(scan, kUnsupportedInText)) {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (has_messages == request.prompt.prompt.has_value()) {
    return InvalidArgument("needs 'prompt' or 'messages', one of them");
  }
  if (has_messages) PACE_RETURN_IF_ERROR(TakeChatValues(body, request.prompt));
  request.prompt.add_special_tokens = says_special ? special : !has_messages;
  return request;
}

Result<DetokenizeRequest> ReadDetokenizeRequest(std::string_view body) {
  DetokenizeRequest request;
  bool has_tokens = false;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "tokens") {
      has_tokens = true;
      ReadIds(scan, request.tokens);
    } else if (scan.key() == "model") {
      ReadText(scan, request.model);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!has_tokens) return InvalidArgument("tokens: field required");
  return request;
}

}  // namespace pace
