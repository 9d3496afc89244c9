// Any bytes as a request of any route: no crash, and a request that is accepted is one that the
// engine accepts.
#include <cstdint>
#include <string_view>

#include "core/json_scanner.h"
#include "rollout/test_tokenizers.h"
#include "serve/api_request.h"
#include "serve/api_response.h"
#include "serve/control_request.h"
#include "serve/engine_request.h"

namespace {

struct Rules {
  Rules() {
    config.vocab_size = 27;
    config.max_positions = 64;
    config.eos = {26};
    rules = {.config = &config, .tokenizer = &tokenizer, .max_model_len = 48};
  }
  pace::ModelConfig config;
  const pace::Tokenizer tokenizer = pace::LetterTokenizer(26);
  pace::PromptRules rules;
};

// The answer to a request whose response repeats its prompt.
void Answer(const pace::GenerateRequest& request, const std::vector<pace::TokenId>& prompt,
            const pace::GroupRequest& group, const pace::PromptRules& rules) {
  pace::Generation generation;
  for (const pace::TokenId id : prompt) {
    if (std::ssize(generation.tokens) == group.stop.max_tokens) break;
    generation.tokens.push_back({.id = id});
  }
  if (request.prompt_logprobs) generation.prompt_logprobs.resize(prompt.size() - 1);
  const pace::AnswerHead head{.id = request.request_id, .model = "m"};
  const std::string answer = AnswerText(head, request, prompt, generation, rules);
  pace::JsonScanner scan(answer);
  scan.Skip();
  if (!scan.End()) __builtin_trap();
  pace::AnswerStream stream(head, request, prompt, rules);
  (void)stream.Tokens(generation.tokens);
  if (!stream.Finish(generation).ends_with("data: [DONE]\n\n")) __builtin_trap();
}

void Read(pace::ApiKind kind, std::string_view body, const pace::PromptRules& rules) {
  const auto request = ReadGenerateRequest(kind, body);
  if (!request.ok()) return;
  const auto prompt = PromptTokens(*request, rules);
  if (!prompt.ok()) return;
  const auto group = EngineRequest(*request, *prompt, rules, 1);
  if (!group.ok()) return;
  if (!CheckRequest(*group, *rules.config, true).ok()) __builtin_trap();
  if (group->stop.max_tokens + std::ssize(*prompt) > rules.max_model_len) __builtin_trap();
  Answer(*request, *prompt, *group, rules);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Rules rules;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Read(pace::ApiKind::kTokens, bytes, rules.rules);
  Read(pace::ApiKind::kCompletion, bytes, rules.rules);
  Read(pace::ApiKind::kChat, bytes, rules.rules);
  (void)pace::ReadTokenizeRequest(bytes).ok();
  (void)pace::ReadDetokenizeRequest(bytes).ok();
  (void)pace::ReadAbortRequest(bytes, false).ok();
  (void)pace::ReadRpcRequest(bytes).ok();
  (void)pace::ReadUpdateRequest(bytes).ok();
  (void)pace::ReadInitRequest(bytes).ok();
  (void)pace::ReadLabelRequest(bytes).ok();
  (void)pace::ReadFinishRequest(bytes).ok();
  const auto target = pace::ReadTarget(bytes);
  if (target.ok()) {
    (void)pace::ReadPauseRequest(*target).ok();
    (void)pace::ReadResetRequest(*target).ok();
  }
  return 0;
}
