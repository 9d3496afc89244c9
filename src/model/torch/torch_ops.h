// TorchOps: the pieces of network.h as differentiable tensor operations.
//
// One object computes one packed batch. It is held by shared_ptr: where layers are
// computed again, the backward pass keeps it. Norms, rotation, softmax and routing
// are float32 whatever the dtype of the network (double stays double). No
// operation is bound to a device. Kernels of our own: norms, gates and attention in
// float32 and bf16 on the CPU (row_functions.h, attention_function.h), in bf16 on a
// GPU, where products keep the gradients of weights in float32, too
// (cuda/training_functions.h).
// Thread-safety: none.
#ifndef PACE_MODEL_TORCH_TORCH_OPS_H_
#define PACE_MODEL_TORCH_TORCH_OPS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/token_id.h"
#include "model/cuda/train/training_functions.h"
#include "model/model_config.h"
#include "model/network.h"
#include "model/recompute_plan.h"
#include "model/torch/attention_function.h"
#include "model/torch/layer_hooks.h"

namespace pace {

struct PackedTokens {
  std::vector<TokenId> tokens;   // of all sequences, one after the other
  std::vector<int64_t> lengths;  // of each sequence, at least 1; they sum to tokens
};

// What the router of one sparse layer chose.
struct RoutingRecord {
  int64_t layer = 0;
  at::Tensor logits_TE;
  at::Tensor experts_TK;  // by falling probability
  at::Tensor weights_TK;
};

class TorchOps : public std::enable_shared_from_this<TorchOps> {
 public:
  using Vector = at::Tensor;
  // One tensor; of queries, keys and values with kernels of our own: side by side,
  // and what they are normed by is for Attend to do. Without: a tensor each.
  struct Rows {
    std::vector<at::Tensor> parts;
    Vector query_norm = {};
    Vector key_norm = {};
  };
  struct Projection {
    at::Tensor weight;
    at::Tensor bias;  // undefined = none
  };
  using Matrix = std::vector<Projection>;
  struct Routing {
    at::Tensor experts_TK;
    at::Tensor weights_TK;
  };
  using Record = std::vector<RoutingRecord>;

  struct Options {
    // Of activations and of the weights as they are used.
    at::ScalarType dtype = at::kFloat;
    // Keep the input of each layer alone and compute the layer again in the
    // backward pass.
    bool recompute_layers = false;
    // Then, on a GPU: of results that are kept nevertheless (recompute_plan.h).
    int64_t kept_bytes = 0;
    LayerHooks* hooks = nullptr;  // borrowed; may be null
  };

  // The config outlives it. `frequencies` lie on the device of the network. `record` may be null.
  TorchOps(const ModelConfig& config, const PackedTokens& batch, const at::Tensor& frequencies,
           const Options& options, Record* record);

  void Layer(const LayerWeights<TorchOps>& weights, int64_t index, Rows& x);
  Rows Embed(const Matrix& embedding) const;
  // x stays what it is, but its other uses must come after: their gradients pass through here.
  Rows Norm(Rows& x, const Vector& weight) const;
  Rows Linear(const Rows& x, const Matrix& matrix) const;
  Rows Gated(const Rows& x, const Matrix& gate_up) const;
  void AddLinear(Rows& x, const Rows& y, const Matrix& matrix) const;
  void Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm) const;
  Rows Attend(const Rows& qkv, int64_t layer);
  Routing Route(const Rows& x, const Matrix& router);
  void AddExperts(Rows& x, const Rows& h, const Routing& routing,
                  const std::vector<Expert<TorchOps>>& experts) const;

 private:
  // Sequences of similar lengths, attended to together, padded at their ends.
  struct LengthClass {
    int64_t num_sequences = 0;
    int64_t max_length = 0;
    at::Tensor rows;  // of the batch, for each padded position; padding repeats a row
  };
  // One run of a layer that is computed twice.
  struct LayerRun {
    KeptParts parts;  // of the first run, for the second
    KeptResult qkv, attention, output, gate_up;
    KeptResult last = {};  // of the second run: gradients do not need it
    bool is_second = false;
    int64_t num_sums = 0;  // that AddLinear has added
  };
  // Where a result is to be kept or taken from; null: nowhere.
  KeptResult* Kept(bool KeptParts::* part, KeptResult LayerRun::* result) const;
  KeptResult* KeptSum(const at::Tensor& x) const;

  void FormClasses(at::Device device);
  void ComputeLayer(const LayerWeights<TorchOps>& weights, int64_t index, Rows& x);

  // Queries, keys and values stay side by side until Attend.
  bool IsPacked() const { return attention_ != nullptr || sequences_ != nullptr; }
  at::Tensor Rotated(const at::Tensor& x_THD, const Vector* norm) const;
  Rows AttendByClasses(const Rows& qkv) const;

  const ModelConfig& config_;
  const std::vector<int64_t> lengths_;
  const Options options_;
  Record* record_;
  std::vector<KeptParts> plan_;  // of the layers that are computed twice
  LayerRun* run_ = nullptr;      // of the layer that is being computed twice
  int64_t layer_ = 0;
  at::Tensor tokens_;
  // Of our own kernels, on the CPU or on a GPU; or null.
  c10::intrusive_ptr<SharedAttention> attention_;
  c10::intrusive_ptr<CudaSequences> sequences_;
  // Else:
  std::vector<LengthClass> classes_;
  at::Tensor padded_positions_;  // of every row, among the padded positions of all classes
  at::Tensor cos_T1D_;           // half of head_dim
  at::Tensor sin_T1D_;
};

// Builds the weights of network.h from parameters by name.
class TorchLoader {
 public:
  explicit TorchLoader(const std::map<std::string, at::Tensor>& parameters)
      : parameters_(parameters) {}

  TorchOps::Matrix Embedding(const std::string& name) const { return Stack({name}); }
  TorchOps::Matrix Stack(const std::vector<std::string>& names) const;
  TorchOps::Matrix GateUp(const std::string& gate, const std::string& up) const {
    return Stack({gate, up});
  }
  TorchOps::Vector Load(const std::string& name) const { return parameters_.at(name + ".weight"); }

 private:
  const std::map<std::string, at::Tensor>& parameters_;
};

}  // namespace pace

#endif  // PACE_MODEL_TORCH_TORCH_OPS_H_
