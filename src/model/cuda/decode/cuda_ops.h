// CudaOps: the pieces of network.h on a GPU, for one pass at a time.
//
// Activations are in workspaces that all passes share, at addresses that stay
// until Reserve moves them. The residual stream and all sums are float32; with
// bf16 weights, what enters a product is rounded to bf16. Norms are lazy: few
// rows are normed inside the product that follows, without a kernel of their own.
// Layers runs all layers of a pass of one or two decode rows in one kernel where
// persistent_layers.h has a case for them; otherwise they run piece by piece.
// Calls launch kernels and return; the first error sticks.
// Thread-safety: none.
#ifndef PACE_MODEL_CUDA_DECODE_CUDA_OPS_H_
#define PACE_MODEL_CUDA_DECODE_CUDA_OPS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/cuda/decode/attention_kernels.h"
#include "model/cuda/decode/batch_metadata.h"
#include "model/cuda/decode/layers_plan.h"
#include "model/cuda/decode/logits_kernels.h"
#include "model/cuda/decode/product_kernels.h"
#include "model/cuda/device_memory.h"
#include "model/cuda/matrix_product.h"
#include "model/network.h"

namespace pace::cuda {

constexpr int64_t StrideOf(int64_t width) {
  return (width + 7) / 8 * 8;
}

class CudaOps {
 public:
  // A workspace, or the residual stream with a norm that is still to be applied.
  struct Rows {
    void* at = nullptr;
    const float* norm = nullptr;
  };
  using Vector = const float*;
  // `weight` is null where only the eight-bit form is there (experts), and `float8` where that is
  // not there. Both hold the same values.
  struct Matrix {
    const void* weight = nullptr;
    const void* float8 = nullptr;  // rows without padding
    const float* scales = nullptr;
    int64_t num_outputs = 0;
    int64_t num_inputs = 0;  // the stride of a row
    const float* bias = nullptr;
  };
  struct Routing {};

  static Result<std::unique_ptr<CudaOps>> Create(const ModelConfig& config, Element element,
                                                 cudaStream_t stream);

  // Makes room for this many rows and requests; true if workspaces moved.
  Result<bool> Reserve(int64_t num_rows, int64_t num_requests);
  // The pass that the following calls compute; all of it must outlive them.
  void Begin(const BatchMetadata& metadata, void* cache, int64_t layer_bytes);

  // Sets the rows' tokens from the results that the metadata names, those of the other copy;
  // before Embed.
  void Advance();
  Rows Embed(const Matrix& embedding);
  Rows Norm(const Rows& x, const Vector& weight) { return {x.at, weight}; }
  Rows Linear(const Rows& x, const Matrix& matrix);
  Rows Gated(const Rows& x, const Matrix& gate_up);
  void AddLinear(Rows& x, const Rows& y, const Matrix& matrix);
  void Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm);
  Rows Attend(const Rows& qkv, int64_t layer);
  Routing Route(const Rows& x, const Matrix& router);
  void AddExperts(Rows& x, const Rows& h, const Routing& routing,
                  const std::vector<Expert<CudaOps>>& experts);

  // All layers in one kernel; false where there is no such case, and nothing is done.
  bool Layers(const std::vector<LayerWeights<CudaOps>>& layers, Rows& x);

  // Whether products with this many rows read the eight-bit form.
  static bool ReadsFloat8(const Matrix& matrix, int64_t num_rows);

  // Computes the results of the pass's requests.
  void RunRequests(const Rows& x, const Matrix& head);
  // Writes each row, normed, into `states` at its cache slot, StrideOf(hidden size) elements
  // each. RunCachedRequests computes requests for such slots.
  void CacheStates(const Rows& x, void* states);
  void RunCachedRequests(const void* states, const Matrix& head);
  LogitsResult* results() const { return ResultsOf(metadata_->shape().copy); }
  // What the last Route selected: num_experts_per_token for each row. On the device.
  const int32_t* chosen_experts() const { return chosen_; }

  // The first error since the last call.
  Status TakeStatus();

 private:
  CudaOps(const ModelConfig& config, Element element, cudaStream_t stream);

  LogitsResult* ResultsOf(int copy) const { return results_ + copy * request_capacity_; }
  LayerCache CacheOf(int64_t layer) const;
  LayersShape LayersShapeOf(int64_t num_rows, bool is_float8) const;
  // x as input of a product: normed into a workspace where a norm is due.
  const void* Normed(const Rows& x);
  bool Streams(int64_t num_rows) const;
  // out = or += x matrix^T. `x`: rows of StrideOf(inputs), or floats with a norm.
  void Multiply(const Rows& x, const Matrix& matrix, int64_t num_rows, bool add, void* out,
                int64_t out_stride);
  // Logits and results of `count` requests whose rows are in requested_.
  void ComputeRequested(const Matrix& head, int64_t begin, int64_t count);
  void Keep(const Status& status);
  template <typename T>
  T* Part(int64_t offset) const {
    return memory_.As<T>(offset);
  }

  const ModelConfig& config_;
  const Element element_;
  const cudaStream_t stream_;
  const int64_t hidden_stride_;
  const int64_t mlp_stride_;
  const int64_t logit_stride_;
  int num_processors_ = 0;
  std::unique_ptr<MatrixProduct> products_;
  DeviceMemory frequencies_;
  DeviceMemory stops_;
  Status status_;
  // Of passes with one row, and with two; of halves, and of eight bits.
  std::array<std::array<std::optional<LayersPlan>, 2>, kMaxLayersRows> layers_plans_;

  const BatchMetadata* metadata_ = nullptr;
  void* cache_ = nullptr;
  int64_t layer_bytes_ = 0;
  // What Rotate leaves to Attend, which knows the layer.
  RotateArguments rotate_;
  const float* qkv_bias_ = nullptr;

  int64_t row_capacity_ = 0;
  int64_t request_capacity_ = 0;
  DeviceMemory memory_;
  float* residual_ = nullptr;
  void* normed_ = nullptr;
  float* qkv_ = nullptr;
  void* queries_ = nullptr;
  void* attended_ = nullptr;
  void* gate_up_ = nullptr;
  void* gated_ = nullptr;
  float* partial_ = nullptr;
  int32_t* finished_ = nullptr;
  void* exchange_ = nullptr;  // of persistent_layers.h
  float* router_logits_ = nullptr;
  int32_t* chosen_ = nullptr;
  float* chosen_weights_ = nullptr;
  ExpertGroup* groups_ = nullptr;
  int32_t* num_groups_ = nullptr;
  void* slot_gated_ = nullptr;
  float* slot_outputs_ = nullptr;
  void* requested_ = nullptr;
  float* logits_ = nullptr;
  float* pieces_ = nullptr;
  LogitsResult* results_ = nullptr;  // for each copy of the metadata
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_CUDA_OPS_H_
