// Settings of the cost model: network shape, accelerator, machines.
#ifndef PACE_CONFIG_CLUSTER_OPTIONS_H_
#define PACE_CONFIG_CLUSTER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

struct ModelOptions {
  int64_t num_layers = 36;

  [[nodiscard]] std::vector<Field> Fields();
};

struct GpuOptions {
  double peak_tflops = 989;

  [[nodiscard]] std::vector<Field> Fields();
};

struct ClusterOptions {
  int64_t rollout_gpus = 4;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate(const GpuOptions& gpu, const ModelOptions& model) const;
};

}  // namespace pace

#endif  // PACE_CONFIG_CLUSTER_OPTIONS_H_
