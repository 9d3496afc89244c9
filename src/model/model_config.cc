#include "model/model_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace pace {
namespace {

// Long waves, which turn less than once in the original context, are stretched
// by the factor; short ones stay; those between are blended. Reciprocals are
// taken where PyTorch takes them, so that the bits agree.
float Llama3Frequency(float frequency, const RopeConfig& rope) {
  const auto factor = static_cast<float>(rope.factor);
  const auto positions = static_cast<double>(rope.original_max_positions);
  const auto longest = static_cast<float>(positions / rope.low_freq_factor);
  const auto shortest = static_cast<float>(positions / rope.high_freq_factor);
  const float wave = 1 / frequency * static_cast<float>(2 * std::numbers::pi);
  if (wave > longest) return frequency / factor;
  if (wave < shortest) return frequency;
  const float turns = 1 / wave * static_cast<float>(positions);
  const float smooth = (turns - static_cast<float>(rope.low_freq_factor)) /
                       static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

bool ModelConfig::IsSparse(int64_t layer) const {
  if (!moe || moe->num_experts == 0) return false;
  if (std::ranges::find(moe->dense_layers, layer) != moe->dense_layers.end()) return false;
  return (layer + 1) % moe->sparse_step == 0;
}

int64_t ModelConfig::num_parameters() const {
  const auto bias = [](bool has, int64_t size) { return has ? size : 0; };
  const auto mlp = [this](int64_t size) { return 3 * hidden_size * size; };
  const int64_t attention = hidden_size * (2 * query_size() + 2 * kv_size()) +
                            bias(qkv_bias, query_size() + 2 * kv_size()) +
                            bias(output_bias, hidden_size) + bias(qk_norm, 2 * head_dim) +
                            2 * hidden_size;
  const int64_t dense =
      mlp(intermediate_size) + bias(mlp_bias, 2 * intermediate_size + hidden_size);
  int64_t sum = (tied ? 1 : 2) * vocab_size * hidden_size + hidden_size;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    sum += attention;
    sum += IsSparse(layer) ? moe->num_experts * (hidden_size + mlp(moe->intermediate_size)) : dense;
  }
  return sum;
}

std::string_view ArchitectureName(Architecture architecture) {
  switch (architecture) {
    case Architecture::kLlama:
      return "llama";
    case Architecture::kQwen2:
      return "qwen2";
    case Architecture::kQwen3:
      return "qwen3";
    case Architecture::kQwen3Moe:
      return "qwen3_moe";
  }
  PACE_CHECK(false, "architecture ", static_cast<int>(architecture));
}

std::vector<float> RopeFrequencies(const ModelConfig& config) {
  std::vector<float> frequencies(static_cast<size_t>(config.head_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    const auto wave = static_cast<float>(std::pow(config.rope.theta, exponent));
    float& frequency = frequencies[i];
    frequency = 1.0F / wave;
    if (config.rope.type == RopeType::kLinear) frequency /= static_cast<float>(config.rope.factor);
    if (config.rope.type == RopeType::kLlama3) frequency = Llama3Frequency(frequency, config.rope);
  }
  return frequencies;
}

}  // namespace pace
