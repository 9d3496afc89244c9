// TrainingNetwork: the differentiable forward pass, in LibTorch.
//
// Parameters are leaf tensors under their checkpoint names. Sequences are
// packed: their tokens lie one after the other, and a token attends to earlier
// tokens of its own sequence alone.
//
//   Result<TrainingNetwork> network = TrainingNetwork::Create(config, weights, {});
//   at::Tensor logits_TV = network->Logits(network->Hidden(batch));
//
// Gradients are those of transformers: the embedding of the padding token gets
// none from the input, and an expert that no token chose has an undefined one.
// Thread-safety: none. LibTorch's exceptions are caught at the callers' edge.
#ifndef PACE_MODEL_TORCH_TRAINING_NETWORK_H_
#define PACE_MODEL_TORCH_TRAINING_NETWORK_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "model/model_config.h"
#include "model/torch/torch_ops.h"
#include "model/weight_set.h"

namespace pace {

class TrainingNetwork {
 public:
  struct Options {
    at::Device device = at::kCPU;
    // Of the parameters: float32; double for tests.
    at::ScalarType dtype = at::kFloat;
    // Of the computation: that of the parameters, or bfloat16, in which norms,
    // rotation and softmax stay float32 and weights are rounded as they are used.
    bool compute_in_bf16 = false;
    // Keep one activation per layer and compute the rest again in the backward
    // pass. On a GPU, more where memory is left (recompute_plan.h). Gradients are
    // then for torch::autograd::backward alone.
    bool recompute_layers = false;
  };
  // REQUIRES: weights of this config
  static Result<TrainingNetwork> Create(const ModelConfig& config, const WeightSet& weights,
                                        const Options& options);
  // Random weights that never were on the host, for benchmarks: matrices normal
  // with this deviation, norms 1.
  static Result<TrainingNetwork> CreateRandom(const ModelConfig& config, uint64_t seed,
                                              double deviation, const Options& options);

  // A network over the same parameters with gradients of its own, for another
  // thread: updates in place are seen by both.
  TrainingNetwork Replica() const;

  // From now on every pass tells `hooks`, which outlive the network. `weights_leave`: between the
  // passes the parameters are not there. Where products would keep rounded copies of them instead,
  // layers are then computed again, as with Options::recompute_layers.
  void UseLayerHooks(LayerHooks* hooks, bool weights_leave);

  const ModelConfig& config() const;
  // By checkpoint name, in that order; requires_grad is set.
  const std::map<std::string, at::Tensor>& parameters() const;

  // Last hidden states, normed, in the dtype of the computation, and logits.
  // REQUIRES: tokens in the vocabulary, lengths as PackedTokens says
  at::Tensor Hidden(const PackedTokens& batch, std::vector<RoutingRecord>* routing = nullptr) const;
  at::Tensor Logits(const at::Tensor& hidden_TH) const;
  // The weight of the vocabulary projection.
  const at::Tensor& head_VH() const;

  // The present parameters as a set that a decoder can take: float32 views of
  // these tensors (the CPU) or of copies on the host. Later updates in place may
  // show through: Prepare from it before the next one.
  WeightSet Weights() const;
  // A copy in `dtype` (F32 or BF16) that stays where the network is: for decoders
  // on the same GPU.
  WeightSet DeviceWeights(Dtype dtype) const;

  TrainingNetwork(TrainingNetwork&&) noexcept;
  TrainingNetwork& operator=(TrainingNetwork&&) noexcept;
  ~TrainingNetwork();

 private:
  struct State;
  explicit TrainingNetwork(std::unique_ptr<State> state);
  static Result<TrainingNetwork> Build(
      const ModelConfig& config, const Options& options,
      const std::function<at::Tensor(const Parameter&)>& parameter_values);
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_MODEL_TORCH_TRAINING_NETWORK_H_
