// Experts stacked into one tensor per projection, as transformers 5 keeps them
// in memory and writes them on request:
//
//   model.layers.N.mlp.experts.gate_up_proj  [num_experts, 2 * size, hidden]
//   model.layers.N.mlp.experts.down_proj     [num_experts, hidden, size]
//
// Thread-safety: pure functions.
#ifndef PACE_MODEL_STACKED_EXPERTS_H_
#define PACE_MODEL_STACKED_EXPERTS_H_

#include "core/status.h"
#include "formats/tensor_view.h"
#include "model/model_config.h"

namespace pace {

// Replaces stacks by views of their parts, under the names of one tensor per
// expert and projection. Views without stacks stay as they are.
Status SplitStackedExperts(const ModelConfig& config, TensorViews& views);

}  // namespace pace

#endif  // PACE_MODEL_STACKED_EXPERTS_H_
