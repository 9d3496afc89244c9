#include "model/torch/torch_ops.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/check.h"
#include "model/torch/product_function.h"
#include "model/torch/row_functions.h"

namespace pace {
namespace {

// Runs `body` without keeping its activations: only its input is kept, and the backward pass runs
// the body again (`again` is then true; both calls must compute the same). Memory is that of one
// body at a time, time that of one more forward pass. Gradients of the body's own leaves are added
// to their .grad(), as backward does, so torch::autograd::grad does not see them.
using RecomputedBody = std::function<at::Tensor(const at::Tensor& x, bool again)>;

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What autograd's context can hold.
struct HeldBody : torch::CustomClassHolder {
  explicit HeldBody(RecomputedBody given) : body(std::move(given)) {}
  RecomputedBody body;
};

class RecomputeFunction : public torch::autograd::Function<RecomputeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<HeldBody>& held) {
    context->save_for_backward({x});
    context->saved_data["body"] = c10::IValue::make_capsule(held);
    return held->body(x, /*again=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held =
        c10::static_intrusive_pointer_cast<HeldBody>(context->saved_data["body"].toCapsule());
    const at::Tensor x = context->get_saved_variables().front().detach().set_requires_grad(true);
    {
      const at::AutoGradMode with_gradients(true);
      torch::autograd::backward({held->body(x, /*again=*/true)}, {gradients.front()});
    }
    return {x.grad(), at::Tensor()};
  }
};

at::Tensor Recomputed(const at::Tensor& x, RecomputedBody body) {
  return RecomputeFunction::apply(x, c10::make_intrusive<HeldBody>(std::move(body)));
}

using Callback = std::function<void()>;

struct HeldCallback : torch::CustomClassHolder {
  explicit HeldCallback(Callback given) : callback(std::move(given)) {}
  Callback callback;
};

// x itself; the backward pass calls when it arrives here.
class MarkFunction : public torch::autograd::Function<MarkFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<HeldCallback>& held) {
    context->saved_data["callback"] = c10::IValue::make_capsule(held);
    return at::alias(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    c10::static_intrusive_pointer_cast<HeldCallback>(context->saved_data["callback"].toCapsule())
        ->callback();
    return {gradients.front(), at::Tensor()};
  }
};

at::Tensor Marked(const at::Tensor& x, Callback callback) {
  return MarkFunction::apply(x, c10::make_intrusive<HeldCallback>(std::move(callback)));
}

// At least float32.
at::Tensor Wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

// x times all matrices, results side by side, and `residual`, which may be undefined.
at::Tensor ApplyStacked(const at::Tensor& x, const TorchOps::Matrix& matrix,
                        KeptResult* kept = nullptr, const at::Tensor& residual = {}) {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;
  for (const TorchOps::Projection& linear : matrix) {
    weights.push_back(linear.weight);
    if (linear.bias.defined()) biases.push_back(linear.bias);
  }
  if (HasCudaProducts(x)) {
    return CudaLinear(x,
                      {.weights = weights, .biases = biases, .residual = residual, .kept = kept});
  }
  if (!residual.defined() || biases.empty()) {
    return ProductOfRows(x, {.weights = weights, .biases = biases, .residual = residual});
  }
  return residual + ProductOfRows(x, {.weights = weights, .biases = biases});
}

at::Tensor Apply(const at::Tensor& x, const TorchOps::Projection& linear) {
  return ApplyStacked(x, {linear});
}

// silu(gate) * up.
at::Tensor GateUp(const at::Tensor& x, const TorchOps::Matrix& gate_up,
                  KeptResult* kept = nullptr) {
  return GatedRows(ApplyStacked(x, gate_up, kept));
}

// Rotary embedding: with (a, b) the halves of a head, (a cos - b sin, b cos + a sin).
at::Tensor RotateRows(const at::Tensor& x_THD, const at::Tensor& cos_T1D,
                      const at::Tensor& sin_T1D) {
  const std::vector<at::Tensor> halves = Wide(x_THD).chunk(2, -1);
  const at::Tensor turned = at::cat(
      {halves[0] * cos_T1D - halves[1] * sin_T1D, halves[1] * cos_T1D + halves[0] * sin_T1D}, -1);
  return turned.to(x_THD.scalar_type());
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
                   const at::Tensor& frequencies, const Options& options, Record* record)
    : config_(config), lengths_(batch.lengths), options_(options), record_(record) {
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
  if (HasKernels(at::empty({0}, frequencies.options().dtype(options.dtype)))) {
    attention_ = c10::make_intrusive<SharedAttention>(config_, lengths_, cos_T1D_, sin_T1D_);
  } else if (HasCudaAttention(config_, options.dtype, device)) {
    sequences_ = c10::make_intrusive<CudaSequences>(config_, lengths_, cos_T1D_, sin_T1D_);
    if (options.recompute_layers) plan_ = PlanRecompute(config_, lengths_, options.kept_bytes);
  } else {
    FormClasses(device);
  }
}

// Autograd computes nodes that are ready in the falling order of their creation, and adds to
// .grad() first of all: at the mark before the layer, all of the layer's gradients are there.
void TorchOps::Layer(const LayerWeights<TorchOps>& weights, int64_t index, Rows& x) {
  LayerHooks* const hooks = options_.hooks;
  if (hooks == nullptr) {
    ComputeLayer(weights, index, x);
    return;
  }
  hooks->BeforeForward(index);
  const bool marks = at::GradMode::is_enabled();
  if (marks) x.parts.front() = Marked(Only(x), [hooks, index] { hooks->AfterBackward(index); });
  ComputeLayer(weights, index, x);
  if (marks) x.parts.front() = Marked(Only(x), [hooks, index] { hooks->BeforeBackward(index); });
  hooks->AfterForward(index);
}

void TorchOps::ComputeLayer(const LayerWeights<TorchOps>& weights, int64_t index, Rows& x) {
  if (!options_.recompute_layers || !at::GradMode::is_enabled()) {
    RunLayer(weights, index, *this, x);
    return;
  }
  // Routing is recorded the first time only.
  Record* const record = std::exchange(record_, nullptr);
  auto first = std::make_shared<LayerRun>();
  if (!plan_.empty()) first->parts = plan_[static_cast<size_t>(index)];
  const auto body = [self = shared_from_this(), &weights, index, record, first](
                        const at::Tensor& input, bool again) {
    Rows rows{{input}};
    self->record_ = again ? nullptr : record;
    // After the second run, results are held by its graph alone.
    LayerRun second;
    if (again) {
      second = std::exchange(*first, {});
      second.is_second = true;
      second.num_sums = 0;
    }
    self->run_ = again ? &second : first.get();
    RunLayer(weights, index, *self, rows);
    self->run_ = nullptr;
    return Only(rows);
  };
  x.parts.front() = Recomputed(Only(x), body);
  record_ = record;
}

KeptResult* TorchOps::Kept(bool KeptParts::* part, KeptResult LayerRun::* result) const {
  return run_ != nullptr && run_->parts.*part ? &(run_->*result) : nullptr;
}

// A layer's sums: after attention, then its output. A second run is for gradients, which do not
// need the latter, so any numbers will do.
KeptResult* TorchOps::KeptSum(const at::Tensor& x) const {
  if (run_ == nullptr) return nullptr;
  if (run_->num_sums++ == 0) return Kept(&KeptParts::output, &LayerRun::output);
  if (!run_->is_second) return nullptr;
  run_->last = {at::empty_like(x)};
  return &run_->last;
}

TorchOps::Rows TorchOps::Embed(const Matrix& embedding) const {
  // transformers does not train the padding row through the embedding.
  return {{at::embedding(embedding.front().weight, tokens_, config_.pad.value_or(-1))
               .to(options_.dtype)}};
}

TorchOps::Rows TorchOps::Norm(Rows& x, const Vector& weight) const {
  NormedRows normed = RmsNormBeside(Only(x), weight, config_.norm_epsilon);
  x.parts.front() = std::move(normed.x);
  return {{std::move(normed.norm)}};
}

TorchOps::Rows TorchOps::Linear(const Rows& x, const Matrix& matrix) const {
  if (IsPacked()) {
    return {{ApplyStacked(Only(x), matrix, Kept(&KeptParts::qkv, &LayerRun::qkv))}};
  }
  Rows out;
  for (const Projection& linear : matrix) out.parts.push_back(Apply(Only(x), linear));
  return out;
}

TorchOps::Rows TorchOps::Gated(const Rows& x, const Matrix& gate_up) const {
  return {{GateUp(Only(x), gate_up, Kept(&KeptParts::gate_up, &LayerRun::gate_up))}};
}

void TorchOps::AddLinear(Rows& x, const Rows& y, const Matrix& matrix) const {
  KeptResult* const kept = HasCudaProducts(Only(y)) ? KeptSum(Only(x)) : nullptr;
  x.parts.front() = ApplyStacked(Only(y), matrix, kept, Only(x));
}

at::Tensor TorchOps::Rotated(const at::Tensor& x, const Vector* norm) const {
  at::Tensor x_THD = x.view({x.size(0), -1, config_.head_dim});
  if (norm != nullptr) x_THD = RmsNormRows(x_THD, *norm, config_.norm_epsilon);
  return RotateRows(x_THD, cos_T1D_, sin_T1D_);
}

void TorchOps::Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm) const {
  if (IsPacked()) {
    if (q_norm != nullptr) qkv.query_norm = q_norm->to(at::kFloat);
    if (k_norm != nullptr) qkv.key_norm = k_norm->to(at::kFloat);
    return;
  }
  qkv.parts[0] = Rotated(qkv.parts[0], q_norm);
  qkv.parts[1] = Rotated(qkv.parts[1], k_norm);
}

// Nearly equal lengths share a class: at most a quarter of it is padding.
void TorchOps::FormClasses(at::Device device) {
  std::vector<int64_t> begins;
  std::vector<size_t> order;
  int64_t num_rows = 0;
  for (size_t i = 0; i < lengths_.size(); ++i) {
    order.push_back(i);
    begins.push_back(num_rows);
    num_rows += lengths_[i];
  }
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return lengths_[a] != lengths_[b] ? lengths_[a] > lengths_[b] : a < b;
  });
  std::vector<int64_t> places(static_cast<size_t>(num_rows));
  int64_t num_places = 0;
  for (size_t first = 0; first < order.size();) {
    LengthClass same;
    same.max_length = lengths_[order[first]];
    std::vector<int64_t> rows;
    for (; first < order.size() && 4 * lengths_[order[first]] >= 3 * same.max_length; ++first) {
      const size_t sequence = order[first];
      ++same.num_sequences;
      for (int64_t t = 0; t < same.max_length; ++t) {
        const bool padding = t >= lengths_[sequence];
        rows.push_back(begins[sequence] + (padding ? 0 : t));
        if (!padding) places[static_cast<size_t>(begins[sequence] + t)] = num_places;
        ++num_places;
      }
    }
    same.rows = at::tensor(rows, at::kLong).to(device);
    classes_.push_back(std::move(same));
  }
  padded_positions_ = at::tensor(places, at::kLong).to(device);
}

TorchOps::Rows TorchOps::Attend(const Rows& qkv, int64_t layer) {
  layer_ = layer;
  if (sequences_ != nullptr) {
    return {{CudaAttend(Only(qkv), qkv.query_norm, qkv.key_norm, sequences_,
                        Kept(&KeptParts::attention, &LayerRun::attention))}};
  }
  if (attention_ == nullptr) return AttendByClasses(qkv);
  return {{AttendRows(Only(qkv), qkv.query_norm, qkv.key_norm, attention_)}};
}

// A class is one causal attention: padding follows every sequence's end,
// where none of its rows looks.
TorchOps::Rows TorchOps::AttendByClasses(const Rows& qkv) const {
  std::vector<at::Tensor> outputs;
  for (const LengthClass& same : classes_) {
    const auto heads_BHTD = [&](const at::Tensor& x) {
      const at::Tensor rows = same.rows.numel() == x.size(0) && same.num_sequences == 1
                                  ? x
                                  : x.index_select(0, same.rows);
      return rows.view({same.num_sequences, same.max_length, -1, config_.head_dim}).transpose(1, 2);
    };
    const at::Tensor out_BHTD = at::scaled_dot_product_attention(
        heads_BHTD(qkv.parts[0]), heads_BHTD(qkv.parts[1]), heads_BHTD(qkv.parts[2]),
        /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true, /*scale=*/{},
        /*enable_gqa=*/config_.num_heads != config_.num_kv_heads);
    outputs.push_back(out_BHTD.transpose(1, 2).reshape({same.num_sequences * same.max_length, -1}));
  }
  const at::Tensor all = outputs.size() == 1 ? outputs.front() : at::cat(outputs);
  return {{all.index_select(0, padded_positions_)}};
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
