// ModelConfig: the shape of a network, as a Hugging Face config.json states it.
//
// Architectures: Llama, Qwen2, Qwen3, Qwen3-MoE. model_config_json.h reads and writes it.
// Thread-safety: values and pure functions.
#ifndef PACE_MODEL_MODEL_CONFIG_H_
#define PACE_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_id.h"
#include "formats/dtype.h"

namespace pace {

enum class Architecture { kLlama, kQwen2, kQwen3, kQwen3Moe };

// How rotary frequencies are stretched for longer contexts.
enum class RopeType { kDefault, kLinear, kLlama3 };

struct RopeConfig {
  double theta = 10000.0;
  RopeType type = RopeType::kDefault;
  double factor = 1.0;                 // linear, llama3
  double low_freq_factor = 1.0;        // llama3
  double high_freq_factor = 4.0;       // llama3
  int64_t original_max_positions = 0;  // llama3
};

// A mixture of experts in place of the MLP.
struct MoeConfig {
  int64_t num_experts = 0;
  int64_t num_experts_per_token = 0;
  int64_t intermediate_size = 0;      // of one expert
  bool normalize_weights = false;     // norm_topk_prob: the chosen weights sum to 1
  int64_t sparse_step = 1;            // every sparse_step-th layer is sparse
  std::vector<int64_t> dense_layers;  // mlp_only_layers
};

struct ModelConfig {
  Architecture architecture = Architecture::kQwen3;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;
  double norm_epsilon = 1e-6;
  RopeConfig rope;
  bool tied = false;  // the output projection is the embedding
  bool qkv_bias = false;
  bool output_bias = false;  // of the attention's output projection
  bool mlp_bias = false;
  bool qk_norm = false;
  std::optional<MoeConfig> moe;
  Dtype dtype = Dtype::kF32;  // of the stored weights
  std::optional<TokenId> bos;
  std::optional<TokenId> pad;
  std::vector<TokenId> eos;  // any of them ends a response

  bool IsSparse(int64_t layer) const;
  int64_t query_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
  // Weights, the tied head counted once.
  int64_t num_parameters() const;
};

// "llama", "qwen3_moe": model_type as config.json spells it.
std::string_view ArchitectureName(Architecture architecture);

// head_dim / 2 angular frequencies, scaled as the config says, in float32 as
// `transformers` computes them.
std::vector<float> RopeFrequencies(const ModelConfig& config);

}  // namespace pace

#endif  // PACE_MODEL_MODEL_CONFIG_H_
