// What transformers assumes of keys that a config.json leaves out, and which
// keys cannot change what a network computes.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CONFIG_DEFAULTS_H_
#define PACE_MODEL_CONFIG_DEFAULTS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/model_config.h"

namespace pace {

struct ConfigDefaults {
  ModelConfig config;  // num_kv_heads and head_dim are unset: see below
  MoeConfig moe;       // meant for Qwen3-MoE alone
  // None: as many as there are heads.
  std::optional<int64_t> num_kv_heads;
  // None: hidden_size / num_attention_heads.
  std::optional<int64_t> head_dim;
};

ConfigDefaults DefaultsOf(Architecture architecture);

// Keys that transformers may write and that leave logits and gradients as they
// are: how to initialise, generate, log, name or place a model.
bool IsInertConfigKey(std::string_view key);

}  // namespace pace

#endif  // PACE_MODEL_CONFIG_DEFAULTS_H_
