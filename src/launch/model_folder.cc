#include "launch/model_folder.h"

#include <string>

#include "core/file.h"
#include "model/model_config_json.h"

namespace pace {

Status CheckModelFolder(const Settings& settings) {
  const std::string& folder = settings.policy.model;
  if (!Files::Default().Exists(folder + "/config.json")) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(folder));
  const ModelOptions& model = settings.model;
  struct Pair {
    const char* key;
    int64_t planned;
    int64_t found;
  };
  const Pair pairs[] = {
      {"num_layers", model.num_layers, config.num_layers},
      {"hidden", model.hidden, config.hidden_size},
      {"num_heads", model.num_heads, config.num_heads},
      {"num_kv_heads", model.num_kv_heads, config.num_kv_heads},
      {"head_dim", model.head_dim, config.head_dim},
      {"ffn", config.moe ? 0 : model.ffn, config.moe ? 0 : config.intermediate_size},
      {"num_experts", model.num_experts, config.moe ? config.moe->num_experts : 0},
      {"vocab", model.vocab, config.vocab_size},
      {"tied_embeddings", model.tied_embeddings ? 1 : 0, config.tied ? 1 : 0}};
  for (const Pair& pair : pairs) {
    if (pair.planned == pair.found) continue;
    return InvalidArgument("model.", pair.key, " = ", pair.planned, ": ", folder,
                           "/config.json has ", pair.found,
                           " (costs and memory are computed from the section model)");
  }
  return Status::Ok();
}

}  // namespace pace
