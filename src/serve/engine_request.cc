#include "serve/engine_request.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pace {
namespace {

Result<std::string> RenderChat(const GenerateRequest& request, const PromptRules& rules) {
  if (rules.chat_template == nullptr) {
    return InvalidArgument("messages: the model has no chat template (use /v1/completions)");
  }
  ChatInputs inputs;
  inputs.messages = *request.messages;
  inputs.add_generation_prompt = request.add_generation_prompt;
  inputs.extra = request.template_variables;
  Result<std::string> text = rules.chat_template->Render(inputs);
  if (!text.ok()) return InvalidArgument("messages: ", text.status().message());
  return text;
}

}  // namespace

Result<std::vector<TokenId>> PromptTokens(const GenerateRequest& request,
                                          const PromptRules& rules) {
  if (request.token_ids) return *request.token_ids;
  std::string rendered;
  if (request.messages) {
    PACE_ASSIGN_OR_RETURN(rendered, RenderChat(request, rules));
  }
  Result<std::vector<TokenId>> tokens = rules.tokenizer->Encode(
      request.messages ? rendered : *request.prompt, request.add_special_tokens);
  if (!tokens.ok()) return InvalidArgument("prompt: ", tokens.status().message());
  return tokens;
}

Result<GroupRequest> EngineRequest(const GenerateRequest& request,
                                   std::vector<TokenId> prompt_tokens, const PromptRules& rules,
                                   uint64_t seed) {
  const bool is_tokens = request.kind == ApiKind::kTokens;
  const char* const name = is_tokens ? "token_ids" : "prompt";
  const auto num_prompt = std::ssize(prompt_tokens);
  if (num_prompt == 0) return InvalidArgument(name, ": must hold at least one token");
  const int64_t room = rules.max_model_len - num_prompt;
  if (room < 1) {
    return InvalidArgument(name, ": ", num_prompt, " tokens leave no room for a response, prompt ",
                           "and response have at most ", rules.max_model_len);
  }
  if (!is_tokens && request.max_tokens.value_or(1) > room) {
    return InvalidArgument("max_tokens = ", *request.max_tokens, ": after a prompt of ", num_prompt,
                           " tokens at most ", room, " fit (prompt and response have at most ",
                           rules.max_model_len, ")");
  }
  GroupRequest group;
  group.seed = request.seed.value_or(seed);
  group.prompt_tokens = std::move(prompt_tokens);
  group.sampling = request.sampling;
  group.score_prompt = request.prompt_logprobs;
  group.stop.max_tokens = std::min(request.max_tokens.value_or(room), room);
  group.stop.stop_tokens = request.stop_token_ids;
  if (!request.ignore_eos) {
    group.stop.stop_tokens.insert(group.stop.stop_tokens.end(), rules.config->eos.begin(),
                                  rules.config->eos.end());
  }
  group.stop.stop_strings = request.stop;
  PACE_RETURN_IF_ERROR(CheckRequest(group, *rules.config, rules.tokenizer != nullptr));
  return group;
}

}  // namespace pace
