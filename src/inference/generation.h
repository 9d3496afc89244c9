// From prompts to requests, and the engine that answers them.
#ifndef PACE_INFERENCE_GENERATION_H_
#define PACE_INFERENCE_GENERATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "inference/inference_options.h"
#include "inference/ready_model.h"
#include "rollout/engine_core.h"
#include "rollout/request.h"

namespace pace {

inline constexpr int64_t kDefaultMaxTokens = 512;

// A request for one prompt, number `index` of this run. Errors: a prompt that is
// empty, or does not fit into the model's positions together with max_tokens.
Result<GroupRequest> RequestFor(const GenerationOptions& options, const ModelConfig& config,
                                bool has_tokenizer, int64_t index, std::vector<TokenId> prompt);

// An engine over a model that is ready, at its first version.
Result<std::unique_ptr<EngineCore>> EngineFor(ReadyModel model, std::optional<Tokenizer> tokenizer,
                                              int64_t max_running);

}  // namespace pace

#endif  // PACE_INFERENCE_GENERATION_H_
