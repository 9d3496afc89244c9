#include "bench/bench_model.h"

#include <unistd.h>

#include <cstdint>
#include <utility>

#include "core/printable.h"
#include "model/model_config_json.h"
#include "model/quantization.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kModelSeed = 20261115;

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

// Qwen3-30B-A3B.
ModelConfig MixtureShape() {
  ModelConfig config = BenchShape();
  config.architecture = Architecture::kQwen3Moe;
  config.vocab_size = 151936;
  config.hidden_size = 2048;
  config.intermediate_size = 6144;
  config.num_layers = 48;
  config.num_heads = 32;
  config.num_kv_heads = 4;
  config.head_dim = 128;
  config.max_positions = 40960;
  config.tied = false;
  config.moe = MoeConfig{.num_experts = 128,
                         .num_experts_per_token = 8,
                         .intermediate_size = 768,
                         .normalize_weights = true,
                         .dense_layers = {}};
  return config;
}

}  // namespace

ModelConfig BenchShape() {
  ModelConfig config;
  config.architecture = Architecture::kQwen3;
  config.vocab_size = 4096;
  config.hidden_size = 384;
  config.intermediate_size = 1024;
  config.num_layers = 8;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 64;
  config.max_positions = 4096;
  config.rope.theta = 1e6;
  config.tied = true;
  config.qk_norm = true;
  return config;
}

Result<ModelConfig> NamedShape(const std::string& name) {
  ModelConfig config = BenchShape();
  if (name == "tiny") return config;
  if (name == "qwen3-30b-a3b") return MixtureShape();
  if (name != "qwen3-4b" && name != "qwen3-0.6b") {
    return InvalidArgument("shape = ", Printable(name),
                           ": must be qwen3-4b, qwen3-0.6b, qwen3-30b-a3b or tiny");
  }
  const bool is_large = name == "qwen3-4b";
  config.vocab_size = 151936;
  config.hidden_size = is_large ? 2560 : 1024;
  config.intermediate_size = is_large ? 9728 : 3072;
  config.num_layers = is_large ? 36 : 28;
  config.num_heads = is_large ? 32 : 16;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.max_positions = 40960;
  return config;
}

void WritePeerConfig(const ModelConfig& config, JsonWriter& json) {
  json.BeginObject();
  json.Put("vocab_size", config.vocab_size);
  json.Put("hidden_size", config.hidden_size);
  json.Put("intermediate_size", config.intermediate_size);
  json.Put("num_hidden_layers", config.num_layers);
  json.Put("num_attention_heads", config.num_heads);
  json.Put("num_key_value_heads", config.num_kv_heads);
  json.Put("head_dim", config.head_dim);
  json.Put("max_position_embeddings", config.max_positions);
  json.Put("tie_word_embeddings", config.tied);
  json.EndObject();
}

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

Status CheckShapes(const std::vector<std::string>& names) {
  for (const std::string& name : names) PACE_RETURN_IF_ERROR(NamedShape(name).status());
  return Status::Ok();
}

double HeadFlops(const ModelConfig& config) {
  return 2 * static_cast<double>(config.hidden_size) * static_cast<double>(config.vocab_size);
}

double StepBytes(const ModelConfig& config, int64_t batch, double context, double num_experts,
                 int64_t matrix_bytes) {
  double matrices = 0;
  double others = 0;
  for (const Parameter& parameter : ParametersOf(config)) {
    const bool is_expert = parameter.name.find(".experts.") != std::string::npos;
    // One row of an embedding that is not the head, too, is read for each sequence.
    const bool is_table = !config.tied && parameter.name == "model.embed_tokens.weight";
    if (is_expert || is_table) continue;
    double count = 1;
    for (const int64_t size : parameter.shape) count *= static_cast<double>(size);
    (IsQuantized(parameter.name) ? matrices : others) += count;
  }
  if (config.moe) {
    matrices +=
        num_experts * static_cast<double>(3 * config.hidden_size * config.moe->intermediate_size);
  }
  const auto kv = static_cast<double>(batch * config.num_layers * 2 * config.kv_size());
  return static_cast<double>(matrix_bytes) * matrices + 2 * (others + kv * context);
}

Result<std::unique_ptr<BenchModel>> BenchModel::Load(const std::string& folder) {
  auto loaded = std::make_unique<BenchModel>();
  loaded->folder = folder;
  if (folder.empty()) {
    loaded->config = BenchShape();
    loaded->weights = RandomWeights(loaded->config, kModelSeed);
    loaded->scratch = fs::temp_directory_path() / Concat("pace-bench-", getpid());
    loaded->folder = loaded->scratch->string();
    PACE_RETURN_IF_ERROR(
        SaveModel(loaded->folder, loaded->config, loaded->weights, Dtype::kF32, int64_t{1} << 32));
    return loaded;
  }
  PACE_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(folder));
  PACE_ASSIGN_OR_RETURN(WeightSet weights, WeightSet::Load(config, folder));
  loaded->config = std::move(config);
  loaded->weights = std::move(weights);
  return loaded;
}

BenchModel::~BenchModel() {
  std::error_code ignored;
  if (scratch) fs::remove_all(*scratch, ignored);
}

}  // namespace pace
