// ProfilePass: the parts of a pass, each alone.
//
// A part is one piece of every layer, captured as a graph of its own and timed on
// the device; so the sum of all parts is near the time of the pass. Where one
// kernel runs all layers (persistent_layers.h), they are one part. Activations
// hold whatever the parts leave in them.
// Thread-safety: as CudaOps.
#ifndef PACE_MODEL_CUDA_DECODE_PASS_PROFILE_H_
#define PACE_MODEL_CUDA_DECODE_PASS_PROFILE_H_

#include <vector>

#include "core/status.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/decode/cuda_ops.h"
#include "model/network.h"

namespace pace::cuda {

struct ProfiledPass {
  const ModelConfig& config;
  const NetworkWeights<CudaOps>& network;
  const BatchMetadata& metadata;
  void* cache = nullptr;
  int64_t layer_bytes = 0;
  int64_t num_context_tokens = 0;  // of all sequences, new ones included
  double num_pairs = 0;            // (row, token it attends to)
  int64_t num_rows = 0;            // without padding
  Element element = Element::kFloat;
};

// REQUIRES: the pass ran before on this stream, its tables are on the device
Result<std::vector<DecodePart>> ProfilePass(const ProfiledPass& pass, CudaOps& ops,
                                            cudaStream_t stream);

// Runs the pass once more and returns the number of experts that at least one of its rows
// selects, summed over the layers. REQUIRES: as ProfilePass; a mixture of experts
Result<int64_t> CountExperts(const ProfiledPass& pass, CudaOps& ops, cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_PASS_PROFILE_H_
