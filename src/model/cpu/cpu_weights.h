// CpuWeights: the weights of one policy version, packed for the kernels.
// Thread-safety: immutable.
#ifndef PACE_MODEL_CPU_CPU_WEIGHTS_H_
#define PACE_MODEL_CPU_CPU_WEIGHTS_H_

#include <memory>

#include "core/status.h"
#include "model/cpu/cpu_ops.h"
#include "model/decoder.h"
#include "model/network.h"
#include "model/weight_set.h"

namespace pace {

struct CpuWeights : DecoderWeights {
  NetworkWeights<CpuOps> network;
};

// Copies and lays out every weight; a tied head is packed from the embedding.
// Fails without the memory for it. Thread-safe.
Result<std::shared_ptr<const CpuWeights>> PackWeights(const ModelConfig& config,
                                                      const WeightSet& weights, bool as_bf16,
                                                      const Kernels& kernels);

}  // namespace pace

#endif  // PACE_MODEL_CPU_CPU_WEIGHTS_H_
