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

// qwen3-4b, qwen3-0.6b, qwen3-30b-a3b, which is a mixture of experts, or tiny, which is
// BenchShape().
Result<ModelConfig> NamedShape(const std::string& name);
Status CheckShapes(const std::vector<std::string>& names);
// The same as the arguments of transformers' Qwen3Config.
void WritePeerConfig(const ModelConfig& config, JsonWriter& json);

// Floating-point operations, a multiply-add counted as two.
// One token through the layers with `context` tokens before it; without the head.
double LayerFlops(const ModelConfig& config, double context);
// Logits of one row.
double HeadFlops(const ModelConfig& config);

// Bytes that a decode step in bf16 must read: the keys and values of `batch` sequences at
// `context`, and once all weights that the step uses, the layers' matrices with `matrix_bytes` an
// element. `num_experts`: the experts that at least one row selects, summed over the layers.
double StepBytes(const ModelConfig& config, int64_t batch, double context, double num_experts,
                 int64_t matrix_bytes = 2);

// Removes the folder at its end, if it made one.
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
