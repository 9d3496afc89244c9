// The parameters of a config, and random values for them.
#include <cmath>

#include "core/concat.h"
#include "core/random.h"
#include "model/weight_set.h"

namespace pace {
namespace {

class ParameterList {
 public:
  explicit ParameterList(const ModelConfig& config) : config_(config) {}

  std::vector<Parameter> All() {
    const ModelConfig& c = config_;
    Add("model.embed_tokens.weight", {c.vocab_size, c.hidden_size});
    for (int64_t layer = 0; layer < c.num_layers; ++layer) AddLayer(layer);
    Add("model.norm.weight", {c.hidden_size});
    if (!c.tied) Add("lm_head.weight", {c.vocab_size, c.hidden_size});
    return std::move(list_);
  }

 private:
  void Add(std::string name, std::vector<int64_t> shape) {
    list_.push_back({.name = std::move(name), .shape = std::move(shape)});
  }

  void AddLinear(const std::string& name, int64_t rows, int64_t columns, bool bias) {
    Add(name + ".weight", {rows, columns});
    if (bias) Add(name + ".bias", {rows});
  }

  void AddMlp(const std::string& at, int64_t size, bool bias) {
    AddLinear(at + "gate_proj", size, config_.hidden_size, bias);
    AddLinear(at + "up_proj", size, config_.hidden_size, bias);
    AddLinear(at + "down_proj", config_.hidden_size, size, bias);
  }

  void AddLayer(int64_t index) {
    const ModelConfig& c = config_;
    const std::string layer = Concat("model.layers.", index, ".");
    const std::string attention = layer + "self_attn.";
    Add(layer + "input_layernorm.weight", {c.hidden_size});
    AddLinear(attention + "q_proj", c.query_size(), c.hidden_size, c.qkv_bias);
    AddLinear(attention + "k_proj", c.kv_size(), c.hidden_size, c.qkv_bias);
    AddLinear(attention + "v_proj", c.kv_size(), c.hidden_size, c.qkv_bias);
    if (c.qk_norm) {
      Add(attention + "q_norm.weight", {c.head_dim});
      Add(attention + "k_norm.weight", {c.head_dim});
    }
    AddLinear(attention + "o_proj", c.hidden_size, c.query_size(), c.output_bias);
    Add(layer + "post_attention_layernorm.weight", {c.hidden_size});
    if (!c.IsSparse(index)) return AddMlp(layer + "mlp.", c.intermediate_size, c.mlp_bias);
    Add(layer + "mlp.gate.weight", {c.moe->num_experts, c.hidden_size});
    for (int64_t expert = 0; expert < c.moe->num_experts; ++expert) {
      AddMlp(Concat(layer, "mlp.experts.", expert, "."), c.moe->intermediate_size, false);
    }
  }

  const ModelConfig& config_;
  std::vector<Parameter> list_;
};

}  // namespace

std::vector<Parameter> ParametersOf(const ModelConfig& config) {
  return ParameterList(config).All();
}

WeightSet RandomWeights(const ModelConfig& config, uint64_t seed, double scale) {
  constexpr uint32_t kStream = 0x77656967;
  constexpr double kNormDeviation = 0.1;
  const CounterRandom random(seed, kStream);
  const auto values =
      std::make_shared<std::vector<float>>(static_cast<size_t>(config.num_parameters()));
  TensorViews views;
  size_t begin = 0;
  uint64_t stream = 0;
  for (Parameter& parameter : ParametersOf(config)) {
    size_t count = 1;
    for (const int64_t size : parameter.shape) count *= static_cast<size_t>(size);
    const bool norm = parameter.name.ends_with("norm.weight");
    const std::span<float> out = std::span(*values).subspan(begin, count);
    for (size_t i = 0; i < count; ++i) {
      const double normal = random.RoughNormal(stream + (i >> 32), i & 0xffffffff);
      out[i] = static_cast<float>(norm ? 1 + kNormDeviation * normal : scale * normal);
    }
    views.emplace(std::move(parameter.name), TensorView{.dtype = Dtype::kF32,
                                                        .shape = std::move(parameter.shape),
                                                        .bytes = std::as_bytes(out)});
    begin += count;
    stream += (count >> 32) + 1;
  }
  Result<WeightSet> set = WeightSet::Create(config, std::move(views), values);
  PACE_CHECK(set.ok(), set.status().message());
  return std::move(*set);
}

}  // namespace pace
