// Small networks of every architecture and option, tokens for them and the logarithm of
// what they answer, for tests.
#ifndef PACE_MODEL_TINY_CONFIGS_H_
#define PACE_MODEL_TINY_CONFIGS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/token_id.h"
#include "model/model_config.h"

namespace pace {

struct TinyConfig {
  std::string name;
  ModelConfig config;
};

inline ModelConfig TinyModel(Architecture architecture) {
  ModelConfig config;
  config.architecture = architecture;
  config.vocab_size = 53;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 6;
  config.max_positions = 128;
  config.qkv_bias = architecture == Architecture::kQwen2;
  config.qk_norm = architecture == Architecture::kQwen3 || architecture == Architecture::kQwen3Moe;
  if (architecture == Architecture::kQwen3Moe) {
    config.moe = MoeConfig{.num_experts = 5,
                           .num_experts_per_token = 2,
                           .intermediate_size = 16,
                           .normalize_weights = true,
                           .sparse_step = 1,
                           .dense_layers = {}};
  }
  return config;
}

inline std::vector<TinyConfig> TinyConfigs() {
  std::vector<TinyConfig> all;
  const auto add = [&](std::string name, Architecture architecture, auto change) {
    ModelConfig config = TinyModel(architecture);
    change(config);
    all.push_back({std::move(name), std::move(config)});
  };
  add("llama", Architecture::kLlama, [](ModelConfig&) {});
  add("llama with a head for every query, tied", Architecture::kLlama, [](ModelConfig& c) {
    c.num_kv_heads = c.num_heads;
    c.tied = true;
  });
  add("llama with all biases", Architecture::kLlama,
      [](ModelConfig& c) { c.qkv_bias = c.output_bias = c.mlp_bias = true; });
  add("llama stretched linearly", Architecture::kLlama, [](ModelConfig& c) {
    c.rope.type = RopeType::kLinear;
    c.rope.factor = 2.5;
  });
  add("llama stretched as llama3", Architecture::kLlama, [](ModelConfig& c) {
    c.head_dim = 16;
    c.rope = {.theta = 500.0,
              .type = RopeType::kLlama3,
              .factor = 8.0,
              .low_freq_factor = 1.0,
              .high_freq_factor = 4.0,
              .original_max_positions = 64};
  });
  add("qwen2", Architecture::kQwen2, [](ModelConfig& c) { c.num_kv_heads = 1; });
  add("qwen3 with wide heads, tied", Architecture::kQwen3, [](ModelConfig& c) {
    c.head_dim = 10;
    c.tied = true;
  });
  add("qwen3 with biases", Architecture::kQwen3,
      [](ModelConfig& c) { c.qkv_bias = c.output_bias = true; });
  add("qwen3_moe", Architecture::kQwen3Moe, [](ModelConfig&) {});
  add("qwen3_moe, weights as they are, every second layer", Architecture::kQwen3Moe,
      [](ModelConfig& c) {
        c.num_layers = 4;
        c.moe->normalize_weights = false;
        c.moe->sparse_step = 2;
      });
  add("qwen3_moe with a dense layer", Architecture::kQwen3Moe, [](ModelConfig& c) {
    c.num_layers = 3;
    c.moe->dense_layers = {1};
    c.moe->num_experts_per_token = 3;
  });
  return all;
}

inline std::vector<TokenId> RandomTokens(int64_t n, int64_t vocab_size, uint64_t seed) {
  const CounterRandom random(seed, 0x746F6B65);
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < n; ++i) {
    tokens.push_back(static_cast<TokenId>(random.Uniform(static_cast<uint64_t>(i)) *
                                          static_cast<double>(vocab_size)));
  }
  return tokens;
}

inline double LogSoftmax(const std::vector<double>& logits, TokenId target) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return logits[static_cast<size_t>(target)] - largest - std::log(sum);
}

}  // namespace pace

#endif  // PACE_MODEL_TINY_CONFIGS_H_
