#include "model/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "core/concat.h"

namespace pace {
namespace {

using Row = std::vector<double>;

void AddTo(Row& x, const Row& y, double scale = 1) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += scale * y[i];
}

Row Softmax(Row x) {
  const double largest = *std::ranges::max_element(x);
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - largest);
  for (double& value : x) value /= sum;
  return x;
}

class Reference {
 public:
  Reference(const ModelConfig& config, const WeightSet& weights)
      : config_(config), frequencies_(RopeFrequencies(config)) {
    for (const Parameter& parameter : ParametersOf(config)) {
      const std::vector<float> floats = weights.Floats(parameter.name);
      values_[parameter.name] = Row(floats.begin(), floats.end());
    }
  }

  ReferenceResult Run(std::span<const TokenId> tokens) {
    std::vector<Row> states;
    for (const TokenId token : tokens) states.push_back(Embed(token));
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) RunLayer(layer, states);
    const std::string head = config_.tied ? "model.embed_tokens" : "lm_head";
    for (const Row& state : states) {
      result_.hidden.push_back(Norm(state, "model.norm"));
      result_.logits.push_back(Linear(result_.hidden.back(), head));
    }
    return std::move(result_);
  }

 private:
  const Row& Values(const std::string& name) const { return values_.at(name); }

  Row Embed(TokenId token) const {
    const auto row = Values("model.embed_tokens.weight").begin() + token * config_.hidden_size;
    return {row, row + config_.hidden_size};
  }

  Row Norm(Row x, const std::string& name) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale =
        1 / std::sqrt(squares / static_cast<double>(x.size()) + config_.norm_epsilon);
    const Row& weight = Values(name + ".weight");
    for (size_t i = 0; i < x.size(); ++i) x[i] *= scale * weight[i];
    return x;
  }

  Row Linear(const Row& x, const std::string& name) const {
    const Row& weight = Values(name + ".weight");
    const auto bias = values_.find(name + ".bias");
    Row y(weight.size() / x.size());
    for (size_t i = 0; i < y.size(); ++i) {
      if (bias != values_.end()) y[i] = bias->second[i];
      for (size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
    }
    return y;
  }

  Row Mlp(const Row& x, const std::string& at) const {
    Row gate = Linear(x, at + "gate_proj");
    const Row up = Linear(x, at + "up_proj");
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    return Linear(gate, at + "down_proj");
  }

  // The heads of a projection of one token, normed if the network does, and
  // turned by the token's position if asked.
  std::vector<Row> Heads(const Row& x, const std::string& name, const std::string& norm,
                         int64_t position, bool turn) const {
    const Row all = Linear(x, name);
    std::vector<Row> heads;
    for (auto at = all.begin(); at != all.end(); at += config_.head_dim) {
      Row head(at, at + config_.head_dim);
      if (config_.qk_norm && turn) head = Norm(head, norm);
      heads.push_back(turn ? Turned(head, position) : head);
    }
    return heads;
  }

  // Angles are float32, as transformers has them.
  Row Turned(const Row& head, int64_t position) const {
    Row turned = head;
    const size_t half = frequencies_.size();
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies_[i];
      const double cosine = std::cos(static_cast<double>(angle));
      const double sine = std::sin(static_cast<double>(angle));
      turned[i] = head[i] * cosine - head[half + i] * sine;
      turned[half + i] = head[half + i] * cosine + head[i] * sine;
    }
    return turned;
  }

  void RunLayer(int64_t index, std::vector<Row>& states) {
    const std::string layer = Concat("model.layers.", index, ".");
    const std::string attention = layer + "self_attn.";
    std::vector<std::vector<Row>> keys;
    std::vector<std::vector<Row>> values;
    for (int64_t position = 0; Row & state : states) {
      const Row x = Norm(state, layer + "input_layernorm");
      const auto queries = Heads(x, attention + "q_proj", attention + "q_norm", position, true);
      keys.push_back(Heads(x, attention + "k_proj", attention + "k_norm", position, true));
      values.push_back(Heads(x, attention + "v_proj", "", position, false));
      AddTo(state, Linear(Attend(queries, keys, values), attention + "o_proj"));

      const Row h = Norm(state, layer + "post_attention_layernorm");
      AddTo(state, config_.IsSparse(index) ? Experts(h, index, position) : Mlp(h, layer + "mlp."));
      ++position;
    }
  }

  // Of the last token over all that came, itself included.
  Row Attend(const std::vector<Row>& queries, const std::vector<std::vector<Row>>& keys,
             const std::vector<std::vector<Row>>& values) const {
    const size_t sharing = queries.size() / keys.front().size();
    Row all;
    for (size_t head = 0; head < queries.size(); ++head) {
      const size_t shared = head / sharing;
      Row scores;
      for (const std::vector<Row>& key : keys) {
        const Row& q = queries[head];
        const double dot = std::inner_product(q.begin(), q.end(), key[shared].begin(), 0.0);
        scores.push_back(dot / std::sqrt(static_cast<double>(config_.head_dim)));
      }
      scores = Softmax(scores);
      Row out(static_cast<size_t>(config_.head_dim));
      for (size_t i = 0; i < scores.size(); ++i) AddTo(out, values[i][shared], scores[i]);
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  }

  Row Experts(const Row& x, int64_t layer, int64_t position) {
    const std::string mlp = Concat("model.layers.", layer, ".mlp.");
    ReferenceRouting routing{.layer = layer,
                             .position = position,
                             .logits = Linear(x, mlp + "gate"),
                             .experts = {},
                             .weights = {}};
    const Row probabilities = Softmax(routing.logits);
    std::vector<int64_t> order(probabilities.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, std::greater(), [&](int64_t expert) {
      return std::pair(probabilities[static_cast<size_t>(expert)], -expert);
    });
    order.resize(static_cast<size_t>(config_.moe->num_experts_per_token));
    double sum = 0;
    for (const int64_t expert : order) sum += probabilities[static_cast<size_t>(expert)];
    if (!config_.moe->normalize_weights) sum = 1;

    Row out(x.size());
    for (const int64_t expert : order) {
      const double weight = probabilities[static_cast<size_t>(expert)] / sum;
      routing.experts.push_back(expert);
      routing.weights.push_back(weight);
      AddTo(out, Mlp(x, Concat(mlp, "experts.", expert, ".")), weight);
    }
    result_.routing.push_back(std::move(routing));
    return out;
  }

  const ModelConfig& config_;
  std::vector<float> frequencies_;
  std::map<std::string, Row> values_;
  ReferenceResult result_;
};

}  // namespace

ReferenceResult ReferenceForward(const ModelConfig& config, const WeightSet& weights,
                                 std::span<const TokenId> tokens) {
  return Reference(config, weights).Run(tokens);
}

}  // namespace pace
