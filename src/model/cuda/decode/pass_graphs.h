// PassGraphs: decode passes as CUDA graphs, one for each shape.
// Thread-safety: none; captures keep apart from other threads' work (capture_gate.h).
#ifndef PACE_MODEL_CUDA_DECODE_PASS_GRAPHS_H_
#define PACE_MODEL_CUDA_DECODE_PASS_GRAPHS_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <map>

#include "core/status.h"
#include "model/cuda/decode/batch_metadata.h"

namespace pace::cuda {

class PassGraphs {
 public:
  PassGraphs() = default;
  ~PassGraphs() { Drop(); }
  PassGraphs(const PassGraphs&) = delete;
  PassGraphs& operator=(const PassGraphs&) = delete;

  // Null where there is none.
  cudaGraphExec_t Find(const PassShape& shape) const {
    const auto found = graphs_.find(shape);
    return found == graphs_.end() ? nullptr : found->second;
  }
  // What `launch` launches becomes the graph of this shape; it returns the first error.
  // Put off, and no error, while others may load kernels.
  Status Capture(const PassShape& shape, cudaStream_t stream,
                 const std::function<Status()>& launch);
  void Drop();

 private:
  std::map<PassShape, cudaGraphExec_t> graphs_;
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_PASS_GRAPHS_H_
