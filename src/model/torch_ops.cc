#include "model/torch_ops.h"

#include "core/check.h"

namespace pace {
namespace {

// At least float32.
at::Tensor Wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

at::Tensor Apply(const at::Tensor& x, const TorchOps::Projection& linear) {
  return linear.bias.defined() ? at::linear(x, linear.weight, linear.bias)
                               : at::linear(x, linear.weight);
}

// silu(gate) * up.
at::Tensor GateUp(const at::Tensor& x, const TorchOps::Matrix& gate_up) {
  return at::silu(Apply(x, gate_up[0])) * Apply(x, gate_up[1]);
}

const at::Tensor& Only(const TorchOps::Rows& rows) {
  PACE_CHECK(rows.parts.size() == 1, rows.parts.size(), " parts");
  return rows.parts.front();
}

at::Tensor PositionsOf(const std::vector<int64_t>& lengths) {
  std::vector<at::Tensor> positions;
  for (const int64_t length : lengths) positions.push_back(at::arange(length, at::kFloat));
  return at::cat(positions);
}

}  // namespace

TorchOps::TorchOps(const ModelConfig& config, const PackedTokens& batch,
                   const at::Tensor& frequencies, Record* record)
    : config_(config), lengths_(batch.lengths), record_(record) {
  int64_t sum = 0;
  for (const int64_t length : lengths_) sum += length;
  PACE_CHECK(sum > 0 && static_cast<size_t>(sum) == batch.tokens.size(), "lengths sum to ", sum,
             ", tokens are ", batch.tokens.size());
  const at::Device device = frequencies.device();
  tokens_ = at::tensor(batch.tokens, at::kInt).to(device, at::kLong);
  const at::Tensor angles =
      PositionsOf(lengths_).to(device).unsqueeze(1) * frequencies.unsqueeze(0);
  cos_T1D_ = at::cos(angles).unsqueeze(1);
  sin_T1D_ = at::sin(angles).unsqueeze(1);
}

TorchOps::Rows TorchOps::Embed(const Matrix& embedding) const {
  // transformers does not train the padding row through the embedding.
  return {{at::embedding(embedding.front().weight, tokens_, config_.pad.value_or(-1))}};
}

at::Tensor TorchOps::RmsNorm(const at::Tensor& x, const at::Tensor& weight) const {
  const at::Tensor wide = Wide(x);
  const at::Tensor scale = at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + config_.norm_epsilon);
  return weight * (wide * scale).to(x.scalar_type());
}

TorchOps::Rows TorchOps::Norm(const Rows& x, const Vector& weight) const {
  return {{RmsNorm(Only(x), weight)}};
}

TorchOps::Rows TorchOps::Linear(const Rows& x, const Matrix& matrix) const {
  Rows out;
  for (const Projection& linear : matrix) out.parts.push_back(Apply(Only(x), linear));
  return out;
}

TorchOps::Rows TorchOps::Gated(const Rows& x, const Matrix& gate_up) const {
  return {{GateUp(Only(x), gate_up)}};
}

void TorchOps::AddLinear(Rows& x, const Rows& y, const Matrix& matrix) const {
  x.parts.front() = Only(x) + Apply(Only(y), matrix.front());
}

at::Tensor TorchOps::Rotated(const at::Tensor& x, const Vector* norm) const {
  at::Tensor x_THD = x.view({x.size(0), -1, config_.head_dim});
  if (norm != nullptr) x_THD = RmsNorm(x_THD, *norm);
  const std::vector<at::Tensor> halves = Wide(x_THD).chunk(2, -1);
  const at::Tensor turned = at::cat(
      {halves[0] * cos_T1D_ - halves[1] * sin_T1D_, halves[1] * cos_T1D_ + halves[0] * sin_T1D_},
      -1);
  return turned.to(x.scalar_type());
}

void TorchOps::Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm) const {
  qkv.parts[0] = Rotated(qkv.parts[0], q_norm);
  qkv.parts[1] = Rotated(qkv.parts[1], k_norm);
}

TorchOps::Rows TorchOps::Attend(const Rows& qkv, int64_t layer) {
  layer_ = layer;
  const auto heads_1HTD = [this](const at::Tensor& x) {
    return x.view({1, x.size(0), -1, config_.head_dim}).transpose(1, 2);
  };
  const at::Tensor q = heads_1HTD(qkv.parts[0]);
  const at::Tensor k = heads_1HTD(qkv.parts[1]);
  const at::Tensor v = heads_1HTD(qkv.parts[2]);
  std::vector<at::Tensor> outputs;
  int64_t begin = 0;
  for (const int64_t length : lengths_) {
    const auto own = [&](const at::Tensor& x) { return x.narrow(2, begin, length); };
    const at::Tensor out_1HTD = at::scaled_dot_product_attention(
        own(q), own(k), own(v), /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true,
        /*scale=*/{}, /*enable_gqa=*/config_.num_heads != config_.num_kv_heads);
    outputs.push_back(out_1HTD.transpose(1, 2).reshape({length, -1}));
    begin += length;
  }
  return {{outputs.size() == 1 ? outputs.front() : at::cat(outputs)}};
}

TorchOps::Routing TorchOps::Route(const Rows& x, const Matrix& router) {
  const at::Tensor logits_TE = Apply(Only(x), router.front());
  const at::Tensor probabilities_TE = at::softmax(Wide(logits_TE), -1);
  auto [weights_TK, experts_TK] =
      at::topk(probabilities_TE, config_.moe->num_experts_per_token, -1);
  if (config_.moe->normalize_weights) weights_TK = weights_TK / weights_TK.sum(-1, true);
  weights_TK = weights_TK.to(logits_TE.scalar_type());
  if (record_ != nullptr) record_->push_back({layer_, logits_TE, experts_TK, weights_TK});
  return {experts_TK, weights_TK};
}

// Rows are copied once for each expert they go to and sorted by it, so that each
// expert computes one block; then they return to their places and are summed.
void TorchOps::AddExperts(Rows& x, const Rows& h, const Routing& routing,
                          const std::vector<Expert<TorchOps>>& experts) const {
  const int64_t num_rows = Only(h).size(0);
  const int64_t per_row = routing.experts_TK.size(1);
  const auto [sorted, order] =
      at::sort(routing.experts_TK.reshape({-1}), /*stable=*/true, 0, false);
  const at::Tensor counts =
      at::bincount(sorted, {}, static_cast<int64_t>(experts.size())).to(at::kCPU);
  const at::Tensor gathered = at::repeat_interleave(Only(h), per_row, 0).index_select(0, order);

  std::vector<at::Tensor> blocks;
  int64_t begin = 0;
  for (size_t expert = 0; expert < experts.size(); ++expert) {
    const int64_t count = counts.data_ptr<int64_t>()[expert];
    if (count == 0) continue;
    const at::Tensor gated = GateUp(gathered.narrow(0, begin, count), experts[expert].gate_up);
    blocks.push_back(Apply(gated, experts[expert].down.front()));
    begin += count;
  }
  const at::Tensor back = at::argsort(order);
  const at::Tensor outputs_TKH =
      at::cat(blocks).index_select(0, back).view({num_rows, per_row, -1});
  x.parts.front() = Only(x) + (outputs_TKH * routing.weights_TK.unsqueeze(-1)).sum(1);
}

TorchOps::Matrix TorchLoader::Stack(const std::vector<std::string>& names) const {
  TorchOps::Matrix matrix;
  for (const std::string& name : names) {
    const auto bias = parameters_.find(name + ".bias");
    matrix.push_back({.weight = parameters_.at(name + ".weight"),
                      .bias = bias == parameters_.end() ? at::Tensor() : bias->second});
  }
  return matrix;
}

}  // namespace pace
