// Floating-point operations of a network, a multiply-add counted as two.
#ifndef PACE_BENCH_FLOPS_H_
#define PACE_BENCH_FLOPS_H_

#include <cstdint>

#include "model/model_config.h"

namespace pace {

// One token through the layers, `context` tokens behind it; without the head.
double LayerFlops(const ModelConfig& config, double context);
// Logits of one row.
double HeadFlops(const ModelConfig& config);

}  // namespace pace

#endif  // PACE_BENCH_FLOPS_H_
