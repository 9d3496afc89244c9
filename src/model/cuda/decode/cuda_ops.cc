#include "model/cuda/decode/cuda_ops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/check.h"
#include "model/cuda/cache_layout.h"
#include "model/cuda/decode/persistent_layers.h"

namespace pace::cuda {
namespace {

// Room for this much from the start: growing drops the graphs.
constexpr int64_t kLeastRows = 512;

template <typename T>
Result<DeviceMemory> Uploaded(const std::vector<T>& values, const char* what) {
  const size_t num_bytes = values.size() * sizeof(T);
  PACE_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::Allocate(static_cast<int64_t>(std::max(num_bytes, sizeof(T))), what));
  PACE_RETURN_IF_ERROR(
      ToStatus(cudaMemcpy(memory.at(), values.data(), num_bytes, cudaMemcpyHostToDevice), what));
  return memory;
}

}  // namespace

CudaOps::CudaOps(const ModelConfig& config, Element element, cudaStream_t stream)
    : config_(config),
      element_(element),
      stream_(stream),
      hidden_stride_(StrideOf(config.hidden_size)),
      mlp_stride_(StrideOf(config.intermediate_size)),
      logit_stride_(StrideOf(config.vocab_size)) {}

Result<std::unique_ptr<CudaOps>> CudaOps::Create(const ModelConfig& config, Element element,
                                                 cudaStream_t stream) {
  std::unique_ptr<CudaOps> ops(new CudaOps(config, element, stream));
  PACE_RETURN_IF_ERROR(ToStatus(
      cudaDeviceGetAttribute(&ops->num_processors_, cudaDevAttrMultiProcessorCount, 0), "device"));
  PACE_ASSIGN_OR_RETURN(ops->products_, MatrixProduct::Create());
  PACE_ASSIGN_OR_RETURN(ops->frequencies_, Uploaded(RopeFrequencies(config), "rotary frequencies"));
  PACE_ASSIGN_OR_RETURN(ops->stops_, Uploaded(config.eos, "stops"));
  if (element == Element::kHalf && !config.moe) {
    for (size_t i = 0; i < ops->layers_plans_.size(); ++i) {
      for (const bool is_float8 : {false, true}) {
        ops->layers_plans_[i][is_float8 ? 1 : 0] =
            PlanLayersHere(ops->LayersShapeOf(static_cast<int64_t>(i) + 1, is_float8));
      }
    }
  }
  return ops;
}

Result<bool> CudaOps::Reserve(int64_t num_rows, int64_t num_requests) {
  if (num_rows <= row_capacity_ && num_requests <= request_capacity_) return false;
  const int64_t rows = std::max({num_rows, row_capacity_, kLeastRows});
  const int64_t requests = std::max({num_requests, request_capacity_, kLeastRows});
  const int64_t logit_rows = std::min(requests, kRequestsAtOnce);
  const MoeConfig moe = config_.moe.value_or(MoeConfig{});
  const int64_t slots = rows * moe.num_experts_per_token;
  const int64_t size = BytesOf(element_);
  const auto heads = static_cast<int>(config_.num_heads);
  const auto dim = static_cast<int>(config_.head_dim);
  int64_t partials = 0;
  int64_t exchange_bytes = 0;
  for (int64_t n = 1; n <= rows; ++n) {
    const int splits = DecodeSplitsFor(n, static_cast<int>(config_.num_kv_heads), num_processors_);
    partials = std::max(partials, DecodePartialFloats(n, heads, dim, splits));
  }
  for (size_t i = 0; i < layers_plans_.size(); ++i) {
    for (const bool is_float8 : {false, true}) {
      const std::optional<LayersPlan>& layers = layers_plans_[i][is_float8 ? 1 : 0];
      if (!layers) continue;
      const LayersShape shape = LayersShapeOf(static_cast<int64_t>(i) + 1, is_float8);
      exchange_bytes = std::max(exchange_bytes, PersistentExchangeBytes(shape, *layers));
    }
  }
  MemoryPlan plan;
  const int64_t residual = plan.Add(4 * rows * hidden_stride_);
  const int64_t normed = plan.Add(size * rows * hidden_stride_);
  const int64_t qkv = plan.Add(4 * rows * StrideOf(config_.query_size() + 2 * config_.kv_size()));
  const int64_t queries = plan.Add(size * rows * heads * PaddedHeadDim(dim));
  const int64_t attended = plan.Add(size * rows * StrideOf(config_.query_size()));
  const int64_t gate_up = plan.Add(size * rows * 2 * config_.intermediate_size);
  const int64_t gated = plan.Add(size * rows * mlp_stride_);
  const int64_t partial = plan.Add(4 * partials);
  const int64_t finished = plan.Add(4 * rows * heads);
  const int64_t exchange = plan.Add(exchange_bytes);
  const int64_t router_logits = plan.Add(4 * rows * StrideOf(moe.num_experts));
  const int64_t chosen = plan.Add(4 * slots);
  const int64_t chosen_weights = plan.Add(4 * slots);
  const int64_t groups =
      plan.Add(MaxExpertGroups(slots, moe.num_experts) * static_cast<int64_t>(sizeof(ExpertGroup)));
  const int64_t num_groups = plan.Add(4);
  const int64_t slot_gated = plan.Add(size * slots * StrideOf(moe.intermediate_size));
  const int64_t slot_outputs = plan.Add(4 * slots * hidden_stride_);
  const int64_t asked = plan.Add(size * logit_rows * hidden_stride_);
  const int64_t logits = plan.Add(4 * logit_rows * logit_stride_);
  const int64_t pieces = plan.Add(4 * LogitsPieceFloats(logit_rows, config_.vocab_size));
  const int64_t results =
      plan.Add(BatchMetadata::kNumCopies * requests * static_cast<int64_t>(sizeof(LogitsResult)));

  // Before the larger one; without it there is none.
  memory_ = DeviceMemory();
  row_capacity_ = request_capacity_ = 0;
  PACE_ASSIGN_OR_RETURN(memory_, DeviceMemory::Allocate(plan.num_bytes(), "activations"));
  row_capacity_ = rows;
  request_capacity_ = requests;
  residual_ = Part<float>(residual);
  normed_ = Part<char>(normed);
  qkv_ = Part<float>(qkv);
  queries_ = Part<char>(queries);
  attended_ = Part<char>(attended);
  gate_up_ = Part<char>(gate_up);
  gated_ = Part<char>(gated);
  partial_ = Part<float>(partial);
  finished_ = Part<int32_t>(finished);
  exchange_ = Part<char>(exchange);
  router_logits_ = Part<float>(router_logits);
  chosen_ = Part<int32_t>(chosen);
  chosen_weights_ = Part<float>(chosen_weights);
  groups_ = Part<ExpertGroup>(groups);
  num_groups_ = Part<int32_t>(num_groups);
  slot_gated_ = Part<char>(slot_gated);
  slot_outputs_ = Part<float>(slot_outputs);
  requested_ = Part<char>(asked);
  logits_ = Part<float>(logits);
  pieces_ = Part<float>(pieces);
  results_ = Part<LogitsResult>(results);
  return true;
}

void CudaOps::Begin(const BatchMetadata& metadata, void* cache, int64_t layer_bytes) {
  PACE_CHECK(metadata.shape().num_rows <= row_capacity_, "Reserve first");
  metadata_ = &metadata;
  cache_ = cache;
  layer_bytes_ = layer_bytes;
}

void CudaOps::Keep(const Status& status) {
  if (status_.ok()) status_ = status;
}

Status CudaOps::TakeStatus() {
  Keep(ToStatus(cudaGetLastError(), "kernels"));
  return std::exchange(status_, Status::Ok());
}

CudaOps::Rows CudaOps::Embed(const Matrix& embedding) {
  cuda::Embed({.tokens = metadata_->rows().tokens,
               .embedding = embedding.weight,
               .element = element_,
               .num_rows = metadata_->shape().num_rows,
               .width = config_.hidden_size,
               .stride = hidden_stride_,
               .out = residual_},
              stream_);
  return {.at = residual_};
}

const void* CudaOps::Normed(const Rows& x) {
  if (x.norm == nullptr) return x.at;
  cuda::Norm({.x = static_cast<const float*>(x.at),
              .weight = x.norm,
              .epsilon = static_cast<float>(config_.norm_epsilon),
              .num_rows = metadata_->shape().num_rows,
              .width = config_.hidden_size,
              .stride = hidden_stride_,
              .out = normed_,
              .element = element_},
             stream_);
  return normed_;
}

bool CudaOps::Streams(int64_t num_rows) const {
  return element_ == Element::kHalf && num_rows <= kMaxStreamRows;
}

bool CudaOps::ReadsFloat8(const Matrix& matrix, int64_t num_rows) {
  if (matrix.float8 == nullptr) return false;
  return matrix.weight == nullptr || (num_rows >= kMinFloat8Rows && num_rows <= kMaxStreamRows);
}

namespace {

// The arguments of a product that reads its weights once.
StreamArguments StreamOf(const CudaOps::Matrix& matrix, const CudaOps::Rows& x, int64_t num_rows,
                         const ModelConfig& config) {
  const bool is_float8 = CudaOps::ReadsFloat8(matrix, num_rows);
  return {.weight = is_float8 ? matrix.float8 : matrix.weight,
          .scales = is_float8 ? matrix.scales : nullptr,
          .num_outputs = matrix.num_outputs,
          .num_inputs = matrix.num_inputs,
          .bias = matrix.bias,
          .x = x.at,
          .x_stride = matrix.num_inputs,
          .num_rows = num_rows,
          .norm_weight = x.norm,
          .norm_width = config.hidden_size,
          .epsilon = static_cast<float>(config.norm_epsilon)};
}

bool CanNorm(const CudaOps::Matrix& matrix, int64_t num_rows, int64_t width) {
  return num_rows <= kMaxStreamNormRows && matrix.num_inputs <= kMaxStreamNormInputs &&
         width % 4 == 0;
}

}  // namespace

void CudaOps::Multiply(const Rows& x, const Matrix& matrix, int64_t num_rows, bool add, void* out,
                       int64_t out_stride) {
  if (Streams(num_rows)) {
    Rows input = x;
    if (x.norm != nullptr && !CanNorm(matrix, num_rows, config_.hidden_size)) {
      input = {.at = const_cast<void*>(Normed(x))};
    }
    StreamArguments stream = StreamOf(matrix, input, num_rows, config_);
    stream.output = add ? StreamOutput::kAdd : StreamOutput::kStore;
    stream.out = out;
    stream.out_stride = out_stride;
    StreamProduct(stream, stream_);
    return;
  }
  const void* const input = Normed(x);
  if (add && matrix.bias != nullptr) {
    AddBias(static_cast<float*>(out), matrix.bias, num_rows, matrix.num_outputs, out_stride,
            stream_);
  }
  Keep(products_->Run({.weight = matrix.weight,
                       .x = input,
                       .out = out,
                       .num_rows = num_rows,
                       .num_outputs = matrix.num_outputs,
                       .num_inputs = matrix.num_inputs,
                       .out_stride = out_stride,
                       .element = element_,
                       .out_element = Element::kFloat,
                       .addend = add ? out : nullptr},
                      stream_));
}

CudaOps::Rows CudaOps::Linear(const Rows& x, const Matrix& matrix) {
  // Rotate adds the bias.
  qkv_bias_ = matrix.bias;
  Multiply(x, matrix, metadata_->shape().num_rows, false, qkv_, StrideOf(matrix.num_outputs));
  return {.at = qkv_};
}

CudaOps::Rows CudaOps::Gated(const Rows& x, const Matrix& gate_up) {
  const int64_t num_rows = metadata_->shape().num_rows;
  const int64_t width = gate_up.num_outputs / 2;
  if (Streams(num_rows)) {
    Rows input = x;
    if (!CanNorm(gate_up, num_rows, config_.hidden_size))
      input = {.at = const_cast<void*>(Normed(x))};
    StreamArguments stream = StreamOf(gate_up, input, num_rows, config_);
    stream.num_outputs = width;
    stream.output = StreamOutput::kGate;
    stream.out = gated_;
    stream.out_stride = mlp_stride_;
    StreamProduct(stream, stream_);
    return {.at = gated_};
  }
  Keep(products_->Run({.weight = gate_up.weight,
                       .x = Normed(x),
                       .out = gate_up_,
                       .num_rows = num_rows,
                       .num_outputs = gate_up.num_outputs,
                       .num_inputs = gate_up.num_inputs,
                       .out_stride = gate_up.num_outputs,
                       .element = element_,
                       .out_element = element_},
                      stream_));
  Gate({.gate_up = gate_up_,
        .bias = gate_up.bias,
        .element = element_,
        .num_rows = num_rows,
        .width = width,
        .out = gated_,
        .out_stride = mlp_stride_},
       stream_);
  return {.at = gated_};
}

void CudaOps::AddLinear(Rows& x, const Rows& y, const Matrix& matrix) {
  Multiply(y, matrix, metadata_->shape().num_rows, true, x.at, hidden_stride_);
}

void CudaOps::Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm) {
  rotate_ = {.qkv = static_cast<const float*>(qkv.at),
             .qkv_stride = StrideOf(config_.query_size() + 2 * config_.kv_size()),
             .bias = qkv_bias_,
             .q_norm = q_norm == nullptr ? nullptr : *q_norm,
             .k_norm = k_norm == nullptr ? nullptr : *k_norm,
             .epsilon = static_cast<float>(config_.norm_epsilon),
             .frequencies = frequencies_.As<float>(),
             .num_heads = static_cast<int>(config_.num_heads),
             .num_rows = metadata_->shape().num_rows,
             .rows = metadata_->rows(),
             .queries = queries_};
}

LayerCache CudaOps::CacheOf(int64_t layer) const {
  return {.at = static_cast<char*>(cache_) + layer * layer_bytes_,
          .element = element_,
          .num_kv_heads = static_cast<int>(config_.num_kv_heads),
          .head_dim = static_cast<int>(config_.head_dim)};
}

CudaOps::Rows CudaOps::Attend(const Rows& /*qkv*/, int64_t layer) {
  const PassShape& shape = metadata_->shape();
  rotate_.cache = CacheOf(layer);
  const AttentionArguments attention = {.queries = queries_,
                                        .num_heads = rotate_.num_heads,
                                        .rows = metadata_->rows(),
                                        .cache = rotate_.cache,
                                        .out = attended_,
                                        .out_stride = StrideOf(config_.query_size())};
  const int num_kv_heads = rotate_.cache.num_kv_heads;
  const DecodeSplits splits = {
      .num_splits = shape.num_single == 0
                        ? 1
                        : DecodeSplitsFor(shape.num_single, num_kv_heads, num_processors_),
      .partial = partial_,
      .finished = finished_};
  const bool is_single = element_ == Element::kHalf && shape.num_single == shape.num_rows;
  if (is_single && CanRotateAndAttend(rotate_.num_heads, num_kv_heads)) {
    RotateAndAttend(attention, rotate_, metadata_->single(), shape.num_single, splits, stream_);
    return {.at = attended_};
  }
  cuda::Rotate(rotate_, stream_);
  if (element_ == Element::kFloat) {
    PlainAttention(attention, shape.num_rows, stream_);
    return {.at = attended_};
  }
  if (shape.num_single > 0) {
    DecodeAttention(attention, metadata_->single(), shape.num_single, splits, stream_);
  }
  if (shape.num_tiles > 0) TileAttention(attention, metadata_->tiles(), shape.num_tiles, stream_);
  return {.at = attended_};
}

CudaOps::Routing CudaOps::Route(const Rows& x, const Matrix& router) {
  const int64_t num_rows = metadata_->shape().num_rows;
  const RouteArguments route = {.logits = router_logits_,
                                .stride = StrideOf(router.num_outputs),
                                .num_rows = num_rows,
                                .num_experts = static_cast<int>(config_.moe->num_experts),
                                .num_chosen = static_cast<int>(config_.moe->num_experts_per_token),
                                .normalize = config_.moe->normalize_weights,
                                .experts = chosen_,
                                .weights = chosen_weights_};
  const StreamArguments product = StreamOf(router, x, num_rows, config_);
  if (element_ == Element::kHalf && CanRouteRows(product, route)) {
    RouteRows(product, route, normed_, stream_);
    return {};
  }
  const Rows normed = {.at = const_cast<void*>(Normed(x))};
  Multiply(normed, router, num_rows, false, router_logits_, route.stride);
  cuda::Route(route, stream_);
  return {};
}

void CudaOps::AddExperts(Rows& x, const Rows& /*h*/, const Routing& /*routing*/,
                         const std::vector<Expert<CudaOps>>& experts) {
  const MoeConfig& moe = *config_.moe;
  const int64_t num_rows = metadata_->shape().num_rows;
  const int64_t num_slots = num_rows * moe.num_experts_per_token;
  const Matrix& gate_up = experts.front().gate_up;
  const Matrix& down = experts.front().down;
  const bool is_float8 = ReadsFloat8(gate_up, num_rows);
  const auto begin = [&](const Matrix& matrix) {
    return static_cast<const char*>(is_float8 ? matrix.float8 : matrix.weight);
  };
  // Experts are consecutive and of equal size.
  const int64_t stride = experts.size() < 2 ? 0
                                            : (begin(experts[1].gate_up) - begin(gate_up)) /
                                                  (is_float8 ? 1 : BytesOf(element_));
  const FewRowExperts few = {.gate_up = begin(gate_up),
                             .down = begin(down),
                             .gate_up_scales = is_float8 ? gate_up.scales : nullptr,
                             .down_scales = is_float8 ? down.scales : nullptr,
                             .expert_stride = stride,
                             .width = moe.intermediate_size,
                             .num_inputs = gate_up.num_inputs,
                             .num_outputs = down.num_outputs,
                             .num_rows = static_cast<int>(num_rows),
                             .num_chosen = static_cast<int>(moe.num_experts_per_token),
                             .experts = chosen_,
                             .weights = chosen_weights_,
                             .x = normed_,
                             .gated = slot_gated_,
                             .gated_stride = down.num_inputs,
                             .out = static_cast<float*>(x.at),
                             .out_stride = hidden_stride_};
  if (element_ == Element::kHalf && num_rows <= kMaxExpertRows && CanRunFewRows(few)) {
    RunFewRows(few, stream_);
    return;
  }
  StreamArguments first = StreamOf(gate_up, {.at = normed_}, num_rows, config_);
  first.num_outputs = moe.intermediate_size;
  first.out = slot_gated_;
  first.out_stride = StrideOf(moe.intermediate_size);
  first.output = StreamOutput::kGate;
  first.slots_per_row = moe.num_experts_per_token;
  StreamArguments second = StreamOf(down, {.at = slot_gated_}, num_rows, config_);
  second.out = slot_outputs_;
  second.out_stride = hidden_stride_;
  for (StreamArguments* product : {&first, &second}) {
    product->groups = groups_;
    product->num_groups = num_groups_;
    product->max_groups = MaxExpertGroups(num_slots, moe.num_experts);
    product->expert_stride = stride;
  }
  if (element_ == Element::kHalf) {
    GroupSlots(chosen_, num_slots, static_cast<int>(moe.num_experts), groups_, num_groups_,
               stream_);
    StreamProduct(first, stream_);
    StreamProduct(second, stream_);
  } else {
    PlainExperts(first, chosen_, num_slots, element_, stream_);
    PlainExperts(second, chosen_, num_slots, element_, stream_);
  }
  CombineExperts(static_cast<float*>(x.at), hidden_stride_, slot_outputs_, chosen_weights_,
                 num_rows, config_.hidden_size, static_cast<int>(moe.num_experts_per_token),
                 stream_);
}

LayersShape CudaOps::LayersShapeOf(int64_t num_rows, bool is_float8) const {
  return {.num_rows = static_cast<int>(num_rows),
          .hidden = static_cast<int>(config_.hidden_size),
          .intermediate = static_cast<int>(config_.intermediate_size),
          .num_heads = static_cast<int>(config_.num_heads),
          .num_kv_heads = static_cast<int>(config_.num_kv_heads),
          .head_dim = static_cast<int>(config_.head_dim),
          .weight_bytes = is_float8 ? 1 : 2};
}

namespace {

// The addresses of a layer's weights, in one order; null where there are none.
std::array<const void*, 20> AddressesOf(const LayerWeights<CudaOps>& layer) {
  const Expert<CudaOps>& mlp = layer.experts.front();
  return {layer.attention_norm,
          layer.qkv.weight,
          layer.qkv.bias,
          layer.q_norm ? *layer.q_norm : nullptr,
          layer.k_norm ? *layer.k_norm : nullptr,
          layer.output.weight,
          layer.output.bias,
          layer.mlp_norm,
          mlp.gate_up.weight,
          mlp.gate_up.bias,
          mlp.down.weight,
          mlp.down.bias,
          layer.qkv.float8,
          layer.qkv.scales,
          layer.output.float8,
          layer.output.scales,
          mlp.gate_up.float8,
          mlp.gate_up.scales,
          mlp.down.float8,
          mlp.down.scales};
}

// The bytes from each layer's weights to the next one's, where they are the same for all.
std::optional<int64_t> LayerStrideOf(const std::vector<LayerWeights<CudaOps>>& layers) {
  const auto first = AddressesOf(layers.front());
  int64_t stride = 0;
  for (size_t i = 1; i < layers.size(); ++i) {
    const auto addresses = AddressesOf(layers[i]);
    for (size_t j = 0; j < first.size(); ++j) {
      if ((first[j] == nullptr) != (addresses[j] == nullptr)) return std::nullopt;
      if (first[j] == nullptr) continue;
      const int64_t distance =
          static_cast<const char*>(addresses[j]) - static_cast<const char*>(first[j]);
      if (stride == 0) stride = distance;
      if (distance != static_cast<int64_t>(i) * stride) return std::nullopt;
    }
  }
  return stride;
}

}  // namespace

bool CudaOps::Layers(const std::vector<LayerWeights<CudaOps>>& layers, Rows& x) {
  const PassShape& shape = metadata_->shape();
  if (shape.num_rows > kMaxLayersRows || shape.num_single != shape.num_rows) return false;
  if (layers.empty()) return false;
  const LayerWeights<CudaOps>& first = layers.front();
  const bool is_float8 = first.qkv.float8 != nullptr;
  const auto& plans = layers_plans_[static_cast<size_t>(shape.num_rows) - 1];
  const std::optional<LayersPlan>& plan = plans[is_float8 ? 1 : 0];
  if (!plan) return false;
  const std::optional<int64_t> layer_stride = LayerStrideOf(layers);
  if (!layer_stride) return false;
  const Expert<CudaOps>& mlp = first.experts.front();
  const auto matrix = [is_float8](const Matrix& m) { return is_float8 ? m.float8 : m.weight; };
  PersistentLayers({.shape = LayersShapeOf(shape.num_rows, is_float8),
                    .plan = *plan,
                    .num_layers = static_cast<int>(layers.size()),
                    .weights = {.attention_norm = first.attention_norm,
                                .qkv = matrix(first.qkv),
                                .qkv_bias = first.qkv.bias,
                                .q_norm = first.q_norm.value_or(nullptr),
                                .k_norm = first.k_norm.value_or(nullptr),
                                .output = matrix(first.output),
                                .output_bias = first.output.bias,
                                .mlp_norm = first.mlp_norm,
                                .gate_up = matrix(mlp.gate_up),
                                .gate_up_bias = mlp.gate_up.bias,
                                .down = matrix(mlp.down),
                                .down_bias = mlp.down.bias,
                                .qkv_scales = first.qkv.scales,
                                .output_scales = first.output.scales,
                                .gate_up_scales = mlp.gate_up.scales,
                                .down_scales = mlp.down.scales,
                                .layer_stride = *layer_stride},
                    .epsilon = static_cast<float>(config_.norm_epsilon),
                    .frequencies = frequencies_.As<float>(),
                    .rows = metadata_->rows(),
                    .cache = cache_,
                    .layer_cache_bytes = layer_bytes_,
                    .residual = static_cast<float*>(x.at),
                    .exchange = exchange_},
                   stream_);
  return true;
}

void CudaOps::Advance() {
  static_assert(BatchMetadata::kNumCopies == 2);
  AdvanceArguments arguments = metadata_->advance(ResultsOf(1 - metadata_->shape().copy));
  arguments.stops = stops_.As<int32_t>();
  arguments.num_stops = std::ssize(config_.eos);
  cuda::Advance(arguments, stream_);
}

void CudaOps::RunRequests(const Rows& x, const Matrix& head) {
  const int64_t num_requests = metadata_->shape().num_requests;
  for (int64_t begin = 0; begin < num_requests; begin += kRequestsAtOnce) {
    const int64_t count = std::min(kRequestsAtOnce, num_requests - begin);
    cuda::Norm({.x = static_cast<const float*>(x.at),
                .rows = metadata_->requested_rows() + begin,
                .weight = x.norm,
                .epsilon = static_cast<float>(config_.norm_epsilon),
                .num_rows = count,
                .width = config_.hidden_size,
                .stride = hidden_stride_,
                .out = requested_,
                .element = element_},
               stream_);
    ComputeRequested(head, begin, count);
  }
}

void CudaOps::CacheStates(const Rows& x, void* states) {
  cuda::Norm({.x = static_cast<const float*>(x.at),
              .slots = metadata_->rows(),
              .weight = x.norm,
              .epsilon = static_cast<float>(config_.norm_epsilon),
              .num_rows = metadata_->shape().num_rows,
              .width = config_.hidden_size,
              .stride = hidden_stride_,
              .out = states,
              .element = element_},
             stream_);
}

void CudaOps::RunCachedRequests(const void* states, const Matrix& head) {
  const int64_t num_requests = metadata_->shape().num_requests;
  for (int64_t begin = 0; begin < num_requests; begin += kRequestsAtOnce) {
    const int64_t count = std::min(kRequestsAtOnce, num_requests - begin);
    Gather({.x = states,
            .rows = metadata_->requested_rows() + begin,
            .num_rows = count,
            .stride = hidden_stride_,
            .out = requested_,
            .element = element_},
           stream_);
    ComputeRequested(head, begin, count);
  }
}

void CudaOps::ComputeRequested(const Matrix& head, int64_t begin, int64_t count) {
  Multiply({.at = requested_}, head, count, false, logits_, logit_stride_);
  ComputeLogitsResults({.logits = logits_,
                        .stride = logit_stride_,
                        .vocab_size = config_.vocab_size,
                        .requests = metadata_->requests() + begin,
                        .num_requests = count,
                        .any_truncated = metadata_->shape().any_truncated,
                        .pieces = pieces_,
                        .results = results() + begin},
                       stream_);
}

}  // namespace pace::cuda
