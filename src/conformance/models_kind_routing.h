// `models`: what the routers of sparse layers chose, and tensors as vectors.
// Thread-safety: pure functions.
#ifndef PACE_CONFORMANCE_MODELS_KIND_ROUTING_H_
#define PACE_CONFORMANCE_MODELS_KIND_ROUTING_H_

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "conformance/models_kind_checks.h"
#include "model/torch/training_network.h"

namespace pace::models {

std::vector<double> Doubles(const at::Tensor& tensor);
std::vector<int64_t> Integers(const at::Tensor& tensor);

// `expected` is the field `router` of the case `name`.
void CheckRouting(const std::vector<RoutingRecord>& records, const MoeConfig& moe,
                  const std::string& name, const Json& expected, FieldCounts& counts);

}  // namespace pace::models

#endif  // PACE_CONFORMANCE_MODELS_KIND_ROUTING_H_
