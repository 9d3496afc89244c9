// Writing config.json and generation_config.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "model/model_config.h"

namespace pace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIndent = 2;

std::string_view ClassName(Architecture architecture) {
  switch (architecture) {
    case Architecture::kLlama:
      return "LlamaForCausalLM";
    case Architecture::kQwen2:
      return "Qwen2ForCausalLM";
    case Architecture::kQwen3:
      return "Qwen3ForCausalLM";
    case Architecture::kQwen3Moe:
      return "Qwen3MoeForCausalLM";
  }
  PACE_CHECK(false, "architecture ", static_cast<int>(architecture));
}

std::string_view TorchName(Dtype dtype) {
  if (dtype == Dtype::kF16) return "float16";
  if (dtype == Dtype::kBF16) return "bfloat16";
  PACE_CHECK(dtype == Dtype::kF32, DtypeName(dtype));
  return "float32";
}

Json EndTokens(const ModelConfig& config) {
  if (config.eos.empty()) return nullptr;
  if (config.eos.size() == 1) return config.eos.front();
  return config.eos;
}

Json Token(std::optional<TokenId> token) {
  return token ? Json(*token) : Json(nullptr);
}

Json RopeScaling(const RopeConfig& rope) {
  switch (rope.type) {
    case RopeType::kDefault:
      return nullptr;
    case RopeType::kLinear:
      return {{"rope_type", "linear"}, {"factor", rope.factor}};
    case RopeType::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", rope.factor},
              {"low_freq_factor", rope.low_freq_factor},
              {"high_freq_factor", rope.high_freq_factor},
              {"original_max_position_embeddings", rope.original_max_positions}};
  }
  PACE_CHECK(false, "rope type ", static_cast<int>(rope.type));
}

void PutMoe(const ModelConfig& config, Json& json) {
  const MoeConfig moe = config.moe.value_or(MoeConfig{});
  json["num_experts"] = moe.num_experts;
  json["num_experts_per_tok"] = std::max<int64_t>(moe.num_experts_per_token, 1);
  json["moe_intermediate_size"] = std::max<int64_t>(moe.intermediate_size, 1);
  json["norm_topk_prob"] = moe.normalize_weights;
  json["decoder_sparse_step"] = moe.sparse_step;
  json["mlp_only_layers"] = moe.dense_layers;
}

}  // namespace

std::string ModelConfigJson(const ModelConfig& config) {
  Json json;
  json["architectures"] = {ClassName(config.architecture)};
  json["model_type"] = ArchitectureName(config.architecture);
  json["vocab_size"] = config.vocab_size;
  json["hidden_size"] = config.hidden_size;
  json["intermediate_size"] = config.intermediate_size;
  json["num_hidden_layers"] = config.num_layers;
  json["num_attention_heads"] = config.num_heads;
  json["num_key_value_heads"] = config.num_kv_heads;
  json["head_dim"] = config.head_dim;
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] = config.max_positions;
  json["rms_norm_eps"] = config.norm_epsilon;
  json["rope_theta"] = config.rope.theta;
  json["rope_scaling"] = RopeScaling(config.rope);
  json["tie_word_embeddings"] = config.tied;
  json["attention_dropout"] = 0.0;
  // Qwen2 has its biases without saying so.
  if (config.architecture != Architecture::kQwen2) json["attention_bias"] = config.qkv_bias;
  if (config.architecture == Architecture::kLlama) json["mlp_bias"] = config.mlp_bias;
  if (config.architecture != Architecture::kLlama) json["use_sliding_window"] = false;
  if (config.architecture == Architecture::kQwen3Moe) PutMoe(config, json);
  json["torch_dtype"] = TorchName(config.dtype);
  json["bos_token_id"] = Token(config.bos);
  json["pad_token_id"] = Token(config.pad);
  json["eos_token_id"] = EndTokens(config);
  return json.dump(kIndent) + "\n";
}

std::string WithStoredDtype(std::string_view config_json, Dtype dtype) {
  Json json = Json::parse(config_json, /*cb=*/nullptr, /*allow_exceptions=*/false);
  PACE_CHECK(json.is_object(), "a config that was read before");
  // transformers 5 writes `dtype`, version 4 `torch_dtype`.
  const bool has_new = json.contains("dtype");
  if (has_new) json["dtype"] = TorchName(dtype);
  if (!has_new || json.contains("torch_dtype")) json["torch_dtype"] = TorchName(dtype);
  return json.dump(kIndent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string GenerationConfigJson(const ModelConfig& config) {
  Json json = {{"bos_token_id", Token(config.bos)},
               {"pad_token_id", Token(config.pad)},
               {"eos_token_id", EndTokens(config)}};
  return json.dump(kIndent) + "\n";
}

}  // namespace pace
