#include "config/cluster_options.h"

namespace pace {

std::vector<Field> ModelOptions::Fields() {
  return {Field::Int("num_layers", num_layers, "Transformer layers.").AtLeast(1)};
}

std::vector<Field> GpuOptions::Fields() {
  return {Field::Real("peak_tflops", peak_tflops, "Dense bf16 TFLOP/s.").Above(0)};
}

std::vector<Field> ClusterOptions::Fields() {
  return {Field::Int("rollout_gpus", rollout_gpus, "GPUs that generate.").AtLeast(1)};
}

Status ClusterOptions::Validate(const GpuOptions&, const ModelOptions&) const {
  return Status::Ok();
}

}  // namespace pace
