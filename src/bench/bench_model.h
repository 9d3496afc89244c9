// The model that a benchmark measures, as weights and as a Hugging Face folder
// that a Python peer can read.
#ifndef PACE_BENCH_BENCH_MODEL_H_
#define PACE_BENCH_BENCH_MODEL_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json_writer.h"
#include "core/status.h"
#include "model/model_config.h"
#include "model/weight_set.h"

namespace pace {

// A Qwen3 of about 15 M parameters.
ModelConfig BenchShape();

// qwen3-4b, qwen3-0.6b, or tiny, which is BenchShape().
Result<ModelConfig> NamedShape(const std::string& name);
// Whether all have such names.
Status CheckShapes(const std::vector<std::string>& names);
// The same as the arguments of transformers' Qwen3Config.
void WritePeerConfig(const ModelConfig& config, JsonWriter& json);

// Owns the folder where it made one: that goes when it goes.
struct BenchModel {
  ModelConfig config;
  WeightSet weights;
  std::string folder;
  std::optional<std::filesystem::path> scratch;

  // `folder` empty: BenchShape() with random weights, in a folder of its own.
  static Result<std::unique_ptr<BenchModel>> Load(const std::string& folder);

  BenchModel() = default;
  BenchModel(const BenchModel&) = delete;
  BenchModel& operator=(const BenchModel&) = delete;
  ~BenchModel();
};

}  // namespace pace

#endif  // PACE_BENCH_BENCH_MODEL_H_
