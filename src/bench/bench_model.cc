#include "bench/bench_model.h"

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20261115;

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

Result<std::unique_ptr<BenchModel>> BenchModel::Load(const std::string& folder) {
  auto loaded = std::make_unique<BenchModel>();
  loaded->folder = folder;
  if (folder.empty()) {
    loaded->config = BenchShape();
    loaded->weights = RandomWeights(loaded->config, kSeed);
    loaded->scratch = fs::temp_directory_path() / Concat("pace-bench-", getpid());
    loaded->folder = loaded->scratch->string();
    PACE_RETURN_IF_ERROR(
        SaveModel(loaded->folder, loaded->config, loaded->weights, Dtype::kF32, int64_t{1} << 32));
    return loaded;
  }
  Result<ModelConfig> config = ReadModelConfig(folder);
  if (!config.ok()) return config.status();
  Result<WeightSet> weights = WeightSet::Load(*config, folder);
  if (!weights.ok()) return weights.status();
  loaded->config = std::move(config).value();
  loaded->weights = std::move(weights).value();
  return loaded;
}

BenchModel::~BenchModel() {
  std::error_code ignored;
  if (scratch) fs::remove_all(*scratch, ignored);
}

}  // namespace pace
