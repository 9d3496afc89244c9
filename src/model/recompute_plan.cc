#include "model/recompute_plan.h"

#include <algorithm>
#include <array>

namespace pace {
namespace {

// Attention computes at about half the speed of products.
constexpr double kAttentionCost = 2;
constexpr int64_t kElementBytes = 2;
constexpr int64_t kStatisticBytes = 4;
constexpr int64_t kGradientBytes = 4;
constexpr int64_t kFewPasses = 3;

struct Part {
  bool KeptParts::* kept;
  int64_t num_bytes = 0;  // of one layer
  double operations = 0;  // that a second run would take
};

std::array<Part, 4> PartsOf(const ModelConfig& config, std::span<const int64_t> lengths) {
  double num_rows = 0;
  double pairs = 0;
  for (const int64_t length : lengths) {
    num_rows += static_cast<double>(length);
    pairs += 0.5 * static_cast<double>(length) * static_cast<double>(length);
  }
  const int64_t heads = config.num_heads * config.head_dim;
  const int64_t qkv = heads + 2 * config.num_kv_heads * config.head_dim;
  const auto rows = static_cast<int64_t>(num_rows);
  const auto product = [&](int64_t inputs, int64_t outputs) {
    return 2 * num_rows * static_cast<double>(inputs) * static_cast<double>(outputs);
  };
  return {{{.kept = &KeptParts::qkv,
            .num_bytes = rows * qkv * kElementBytes,
            .operations = product(config.hidden_size, qkv)},
           {.kept = &KeptParts::attention,
            .num_bytes = rows * (heads * kElementBytes + config.num_heads * kStatisticBytes),
            .operations = kAttentionCost * 4 * pairs * static_cast<double>(heads)},
           {.kept = &KeptParts::output,
            .num_bytes = rows * config.hidden_size * kElementBytes,
            .operations = product(heads, config.hidden_size)},
           {.kept = &KeptParts::gate_up,
            .num_bytes = rows * 2 * config.intermediate_size * kElementBytes,
            .operations = product(config.hidden_size, 2 * config.intermediate_size)}}};
}

// Of a token in the MLP of a layer, as its backward pass reads them.
int64_t MlpElements(const ModelConfig& config) {
  return config.moe ? config.moe->num_experts_per_token *
                          (3 * config.moe->intermediate_size + 2 * config.hidden_size)
                    : 3 * config.intermediate_size;
}

int64_t LayerParameters(const ModelConfig& config) {
  const int64_t heads = (2 * config.num_heads + 2 * config.num_kv_heads) * config.head_dim;
  const int64_t mlp = config.moe ? config.moe->num_experts * config.moe->intermediate_size
                                 : config.intermediate_size;
  return config.hidden_size * (heads + 3 * mlp);
}

bool Has(const ModelConfig& config, int64_t layer, const Part& part) {
  return part.num_bytes > 0 && (part.kept != &KeptParts::gate_up || !config.IsSparse(layer));
}

}  // namespace

std::vector<KeptParts> PlanRecompute(const ModelConfig& config, std::span<const int64_t> lengths,
                                     int64_t num_bytes) {
  std::vector<KeptParts> plan(static_cast<size_t>(config.num_layers));
  std::array<Part, 4> parts = PartsOf(config, lengths);
  std::ranges::sort(parts, [](const Part& a, const Part& b) {
    const double left = a.operations * static_cast<double>(b.num_bytes);
    const double right = b.operations * static_cast<double>(a.num_bytes);
    return left != right ? left > right : a.num_bytes < b.num_bytes;
  });
  int64_t left = num_bytes;
  for (const Part& part : parts) {
    for (int64_t layer = config.num_layers - 1; layer >= 0; --layer) {
      if (!Has(config, layer, part) || part.num_bytes > left) continue;
      plan[static_cast<size_t>(layer)].*part.kept = true;
      left -= part.num_bytes;
    }
  }
  return plan;
}

int64_t KeptBytes(const ModelConfig& config, std::span<const int64_t> lengths,
                  std::span<const KeptParts> plan) {
  int64_t sum = 0;
  for (const Part& part : PartsOf(config, lengths)) {
    for (const KeptParts& kept : plan) sum += kept.*part.kept ? part.num_bytes : 0;
  }
  return sum;
}

bool PassSizes::Change(int64_t num_rows) {
  num_equal_ = num_rows == last_rows_ ? num_equal_ + 1 : 0;
  last_rows_ = num_rows;
  return num_equal_ < kFewPasses;
}

int64_t LayerElements(const ModelConfig& config) {
  const int64_t qkv = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim;
  const int64_t mlp = MlpElements(config);
  // Two norms and two sums; heads as they come, turned and attended; gates and ups.
  return 4 * config.hidden_size + 3 * qkv + mlp;
}

int64_t PassBytes(const ModelConfig& config, int64_t num_rows) {
  const int64_t inputs = num_rows * config.num_layers * config.hidden_size * kElementBytes;
  // The MLP's gradients are there while all activations still are.
  const int64_t layer = num_rows * kElementBytes * (LayerElements(config) + MlpElements(config)) +
                        LayerParameters(config) * (kGradientBytes + kElementBytes);
  const int64_t head = config.vocab_size * config.hidden_size;
  const int64_t logits =
      std::min(num_rows * config.vocab_size, kMaxGpuLogits) * (kGradientBytes + kElementBytes) +
      head * kElementBytes;
  return inputs + std::max(layer, logits) + head * kGradientBytes;
}

}  // namespace pace
