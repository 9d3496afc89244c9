// Policy: a model as a run starts from it: network, tokenizer, chat template.
//
//   Result<Policy> policy = LoadPolicy(settings.policy);    // a folder, or `tiny`
//   Status saved = SavePolicy(folder, *policy, weights, Dtype::kF32);
//
// Thread-safety: immutable values.
#ifndef PACE_EXECUTION_POLICY_H_
#define PACE_EXECUTION_POLICY_H_

#include <map>
#include <optional>
#include <string>

#include "config/cluster_options.h"
#include "config/learning_options.h"
#include "core/status.h"
#include "model/model_config.h"
#include "model/weight_set.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

struct Policy {
  ModelConfig config;
  WeightSet weights;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  // Files of the tokenizer and configs of the model, unchanged, by name. Every checkpoint
  // contains them, config.json with the dtype of the checkpoint's weights.
  std::map<std::string, std::string> texts;
};

// A folder in the Hugging Face layout, or the name of a built-in model (tiny_model.h).
Result<Policy> LoadPolicy(const PolicyOptions& options);

// A network of this shape with random weights, over the characters of generated tasks:
// the start of `pace sft --fresh`.
enum class CharacterSet { kArithmetic, kTools };
Result<Policy> NewCharacterPolicy(const ModelOptions& shape, uint64_t seed,
                                  CharacterSet characters = CharacterSet::kArithmetic);

// Writes a folder that LoadPolicy and transformers read. `folder` may not hold
// weights yet.
Status SavePolicy(const std::string& folder, const Policy& policy, const WeightSet& weights,
                  Dtype dtype);

}  // namespace pace

#endif  // PACE_EXECUTION_POLICY_H_
