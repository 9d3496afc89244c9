// The networks, defined once: a decoder-only transformer with rotary
// embeddings, grouped-query attention and a gated MLP or experts.
//
// RunNetwork is the definition; an Ops says how one device and purpose computes
// its pieces. CpuOps decodes and prefills with fused kernels; TorchOps is
// differentiable and trains. Both follow this file, so they cannot drift apart
// in structure, and tests compare them in value.
//
// An Ops provides, over a ragged batch of tokens that it holds itself:
//
//   Rows      activations, one row per token
//   Vector    a norm's weight
//   Matrix    one or more weight matrices applied together, biases included
//   Routing   which experts a row goes to, and with which weights
//
//   Rows Embed(const Matrix&)                 rows of the embedding
//   Rows Norm(const Rows&, const Vector&)     RMS norm
//   Rows Linear(const Rows&, const Matrix&)
//   Rows Gated(const Rows&, const Matrix&)    silu(gate) * up; the matrix holds both
//   void AddLinear(Rows& x, const Rows&, const Matrix&)         x += linear
//   void Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm)
//                                             per-head norms if any, then rotary, on q and k
//   Rows Attend(const Rows& qkv, int64_t layer)   causal; keys and values join the cache
//   Routing Route(const Rows&, const Matrix&)
//   void AddExperts(Rows& x, const Rows&, const Routing&, const std::vector<Expert<Ops>>&)
//
// A loader builds the weights: Matrix Stack(names), whose rows lie one below
// the other; Matrix GateUp(gate, up); Vector Load(name). Biases are found as
// NAME.bias beside NAME.weight where the config has them.
#ifndef PACE_MODEL_NETWORK_H_
#define PACE_MODEL_NETWORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/concat.h"
#include "model/model_config.h"

namespace pace {

template <typename Ops>
struct Expert {
  typename Ops::Matrix gate_up;
  typename Ops::Matrix down;
};

template <typename Ops>
struct LayerWeights {
  typename Ops::Vector attention_norm;
  typename Ops::Matrix qkv;
  std::optional<typename Ops::Vector> q_norm;
  std::optional<typename Ops::Vector> k_norm;
  typename Ops::Matrix output;
  typename Ops::Vector mlp_norm;
  // A dense layer has one expert and no router.
  std::optional<typename Ops::Matrix> router;
  std::vector<Expert<Ops>> experts;
};

template <typename Ops>
struct NetworkWeights {
  typename Ops::Matrix embedding;
  std::vector<LayerWeights<Ops>> layers;
  typename Ops::Vector final_norm;
  typename Ops::Matrix head;
};

template <typename Ops, typename Loader>
LayerWeights<Ops> LoadLayer(const ModelConfig& config, int64_t index, Loader& loader) {
  const std::string layer = Concat("model.layers.", index, ".");
  const std::string attention = layer + "self_attn.";
  const std::string mlp = layer + "mlp.";
  const auto expert = [&](const std::string& at) {
    return Expert<Ops>{.gate_up = loader.GateUp(at + "gate_proj", at + "up_proj"),
                       .down = loader.Stack({at + "down_proj"})};
  };
  LayerWeights<Ops> weights{
      .attention_norm = loader.Load(layer + "input_layernorm"),
      .qkv = loader.Stack({attention + "q_proj", attention + "k_proj", attention + "v_proj"}),
      .q_norm = {},
      .k_norm = {},
      .output = loader.Stack({attention + "o_proj"}),
      .mlp_norm = loader.Load(layer + "post_attention_layernorm"),
      .router = {},
      .experts = {}};
  if (config.qk_norm) {
    weights.q_norm = loader.Load(attention + "q_norm");
    weights.k_norm = loader.Load(attention + "k_norm");
  }
  if (!config.IsSparse(index)) {
    weights.experts.push_back(expert(mlp));
    return weights;
  }
  weights.router = loader.Stack({mlp + "gate"});
  for (int64_t e = 0; e < config.moe->num_experts; ++e) {
    weights.experts.push_back(expert(Concat(mlp, "experts.", e, ".")));
  }
  return weights;
}

template <typename Ops, typename Loader>
NetworkWeights<Ops> LoadNetwork(const ModelConfig& config, Loader& loader) {
  NetworkWeights<Ops> weights{
      .embedding = loader.Embedding("model.embed_tokens"),
      .layers = {},
      .final_norm = loader.Load("model.norm"),
      .head = loader.Stack({config.tied ? "model.embed_tokens" : "lm_head"})};
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    weights.layers.push_back(LoadLayer<Ops>(config, layer, loader));
  }
  return weights;
}

// One layer, in place.
template <typename Ops>
void RunLayer(const LayerWeights<Ops>& layer, int64_t index, Ops& ops, typename Ops::Rows& x) {
  auto qkv = ops.Linear(ops.Norm(x, layer.attention_norm), layer.qkv);
  ops.Rotate(qkv, layer.q_norm ? &*layer.q_norm : nullptr, layer.k_norm ? &*layer.k_norm : nullptr);
  ops.AddLinear(x, ops.Attend(qkv, index), layer.output);

  const auto h = ops.Norm(x, layer.mlp_norm);
  if (layer.router) {
    ops.AddExperts(x, h, ops.Route(h, *layer.router), layer.experts);
  } else {
    const Expert<Ops>& mlp = layer.experts.front();
    ops.AddLinear(x, ops.Gated(h, mlp.gate_up), mlp.down);
  }
}

// The last hidden state of every token, normed: Linear with `head` gives logits.
// An Ops may have a Layer(weights, index, x) of its own, that runs RunLayer in
// its own way: computing it again in the backward pass, say. It may also have a
// Layers(weights, x), that runs all layers, or returns false and does nothing.
template <typename Ops>
typename Ops::Rows RunNetwork(const NetworkWeights<Ops>& weights, Ops& ops) {
  auto x = ops.Embed(weights.embedding);
  if constexpr (requires { ops.Layers(weights.layers, x); }) {
    if (ops.Layers(weights.layers, x)) return ops.Norm(x, weights.final_norm);
  }
  for (int64_t index = 0; const LayerWeights<Ops>& layer : weights.layers) {
    if constexpr (requires { ops.Layer(layer, index, x); }) {
      ops.Layer(layer, index, x);
    } else {
      RunLayer(layer, index, ops, x);
    }
    ++index;
  }
  return ops.Norm(x, weights.final_norm);
}

}  // namespace pace

#endif  // PACE_MODEL_NETWORK_H_
