#include "bench/flops.h"

namespace pace {
namespace {

double MlpFlops(const ModelConfig& config, int64_t layer) {
  const auto hidden = static_cast<double>(config.hidden_size);
  if (!config.IsSparse(layer)) {
    return 6 * hidden * static_cast<double>(config.intermediate_size);
  }
  const MoeConfig& moe = *config.moe;
  const double experts =
      static_cast<double>(moe.num_experts_per_token) * static_cast<double>(moe.intermediate_size);
  return 6 * hidden * experts + 2 * hidden * static_cast<double>(moe.num_experts);
}

}  // namespace

double LayerFlops(const ModelConfig& config, double context) {
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto query = static_cast<double>(config.query_size());
  const auto kv = static_cast<double>(config.kv_size());
  double flops = 0;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    flops += 2 * hidden * (2 * query + 2 * kv) + 4 * query * context + MlpFlops(config, layer);
  }
  return flops;
}

double HeadFlops(const ModelConfig& config) {
  return 2 * static_cast<double>(config.hidden_size) * static_cast<double>(config.vocab_size);
}

}  // namespace pace
