#include "inference/generation.h"

#include <algorithm>

namespace pace {

Status GenerationOptions::Validate() const {
  PACE_RETURN_IF_ERROR(sampling.Validate());
  if (max_tokens.has_value() && *max_tokens < 1) {
    return InvalidArgument("--max-tokens ", *max_tokens, ": must be >= 1");
  }
  if (num_responses < 1) {
    return InvalidArgument("--num-responses ", num_responses, ": must be >= 1");
  }
  return Status::Ok();
}

Result<GroupRequest> RequestFor(const GenerationOptions& options, const ModelConfig& config,
                                bool has_tokenizer, int64_t index, std::vector<TokenId> prompt) {
  const auto num_prompt = static_cast<int64_t>(prompt.size());
  const int64_t room = config.max_positions - num_prompt;
  if (num_prompt == 0) return InvalidArgument("the prompt has no tokens: it needs at least one");
  if (room < options.max_tokens.value_or(1)) {
    return InvalidArgument(num_prompt, " tokens and ", options.max_tokens.value_or(1),
                           " more (--max-tokens): the model has ", config.max_positions,
                           " positions");
  }
  GroupRequest request;
  request.group = GroupId(index);
  request.prompt = PromptIndex(index);
  request.seed = options.seed;
  request.prompt_tokens = std::move(prompt);
  request.num_responses = options.num_responses;
  request.sampling = options.sampling;
  request.stop.max_tokens = options.max_tokens.value_or(std::min(kDefaultMaxTokens, room));
  if (!options.ignore_eos) request.stop.stop_tokens = config.eos;
  request.stop.stop_strings = options.stop_strings;
  PACE_RETURN_IF_ERROR(CheckRequest(request, config, has_tokenizer));
  return request;
}

Result<std::unique_ptr<EngineCore>> EngineFor(ReadyModel model, std::optional<Tokenizer> tokenizer,
                                              int64_t max_running) {
  RolloutOptions options;
  options.score_prefixes = false;
  options.max_running = max_running;
  auto engine =
      std::make_unique<EngineCore>(std::move(model.decoder), std::move(tokenizer), options);
  PACE_RETURN_IF_ERROR(engine->Sync(PolicyVersion(0), std::move(model.weights)));
  return engine;
}

}  // namespace pace
