#include "model/cuda/train/training_functions.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/check.h"
#include "model/cuda/cache_layout.h"
#include "model/cuda/matrix_product.h"
#include "model/cuda/train/training_kernels.h"

namespace pace {
namespace {

using cuda::Element;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Set once, before a run trains.
std::atomic<int64_t> training_limit = std::numeric_limits<int64_t>::max();
// What LibTorch holds beside the tensors of a pass: workspaces and the unused parts of segments.
// With Qwen3 0.6B and 4B it was 100 MiB and 1.43 % of the limit.
constexpr int64_t kMarginBytes = int64_t{160} << 20;
constexpr double kMarginShare = 0.015;  // of the limit
// Where passes differ in size, gaps between blocks held another 440 MiB.
constexpr int64_t kGapBytes = int64_t{512} << 20;

// Selects LibTorch's expandable segments, which fragment less when sizes change between passes,
// unless the user configured the allocator.
void UseGrowingSegments() {
  const auto is_set = [](const char* variable) { return std::getenv(variable) != nullptr; };
  if (is_set("PYTORCH_ALLOC_CONF") || is_set("PYTORCH_CUDA_ALLOC_CONF")) return;
  c10::CachingAllocator::setAllocatorSettings("expandable_segments:True");
}

struct Held {
  int64_t allocated = 0;
  int64_t reserved = 0;
  int64_t most = 0;  // reserved
};
Held HeldByTraining() {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {.allocated = stats.allocated_bytes[kAll].current,
          .reserved = stats.reserved_bytes[kAll].current,
          .most = stats.reserved_bytes[kAll].peak};
}

cudaStream_t Stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

// Of the last kernel that was queued.
void CheckLaunch() {
  C10_CUDA_CHECK(cudaGetLastError());
}

bool IsCudaFloat(const at::Tensor& x) {
  return x.is_cuda() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

Element ElementOf(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? Element::kHalf : Element::kFloat;
}

float* Floats(const at::Tensor& x) {
  return x.numel() > 0 ? x.data_ptr<float>() : nullptr;
}

// Autograd takes no undefined inputs.
at::Tensor OrEmpty(const at::Tensor& given, const at::Tensor& like) {
  return given.defined() ? given.contiguous() : at::empty({0}, like.options().dtype(at::kFloat));
}

at::Tensor Partials(const at::Tensor& like, int64_t num_rows, at::IntArrayRef sizes) {
  std::vector<int64_t> shape = {cuda::NumPartials(num_rows)};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return at::empty(shape, like.options().dtype(at::kFloat));
}

at::Tensor SumOf(const at::Tensor& partials) {
  const at::Tensor sums = at::empty(partials.sizes().slice(1), partials.options());
  cuda::AddPartials(Floats(partials), partials.size(0), sums.numel(), Floats(sums), Stream());
  CheckLaunch();
  return sums;
}

cuda::TrainingNorm NormOf(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return {.x = x.data_ptr(),
          .weight = weight.data_ptr<float>(),
          .epsilon = static_cast<float>(epsilon),
          .num_rows = x.numel() / x.size(-1),
          .width = x.size(-1),
          .element = ElementOf(x)};
}

cuda::TrainingGate GateOf(const at::Tensor& gate_up) {
  const int64_t width = gate_up.size(-1) / 2;
  return {.gate_up = gate_up.data_ptr(),
          .num_rows = gate_up.numel() / (2 * width),
          .width = width,
          .element = ElementOf(gate_up)};
}

// One below the other, in bf16.
at::Tensor Stacked(at::TensorList parts) {
  if (parts.size() == 1) return parts.front().to(at::kBFloat16);
  std::vector<int64_t> sizes = parts.front().sizes().vec();
  sizes[0] = 0;
  for (const at::Tensor& part : parts) sizes[0] += part.size(0);
  const at::Tensor all = at::empty(sizes, parts.front().options().dtype(at::kBFloat16));
  int64_t begin = 0;
  for (const at::Tensor& part : parts) {
    all.narrow(0, begin, part.size(0)).copy_(part);
    begin += part.size(0);
  }
  return all;
}

// Of products that LibTorch would compute in two passes: one for each thread that multiplies, the
// caller's and autograd's. Counted by MostTrainingMemory.
constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
constexpr int64_t kNumProductThreads = 2;
std::atomic<int64_t> product_workspaces = 0;

cuda::MatrixProduct* ThreadProducts() {
  thread_local const std::unique_ptr<cuda::MatrixProduct> products = [] {
    Result<std::unique_ptr<cuda::MatrixProduct>> made =
        cuda::MatrixProduct::Create(kProductWorkspaceBytes);
    if (made.ok()) product_workspaces += kProductWorkspaceBytes;
    return made.ok() ? std::move(*made) : nullptr;
  }();
  return products.get();
}

// addend + x weight^T without the copy of the addend that addmm makes.
at::Tensor SumWithProduct(const at::Tensor& addend, const at::Tensor& x, const at::Tensor& weight) {
  constexpr uintptr_t kAlignment = 256;  // that cuBLAS's choice of an algorithm relies on
  const auto is_aligned = [](const at::Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(tensor.data_ptr()) % kAlignment == 0;
  };
  cuda::MatrixProduct* const products = ThreadProducts();
  const at::Tensor sum = at::empty({x.size(0), weight.size(0)}, x.options());
  const bool is_done = products != nullptr && addend.is_contiguous() && is_aligned(addend) &&
                       is_aligned(x) &&
                       products
                           ->Run({.weight = weight.data_ptr(),
                                  .x = x.data_ptr(),
                                  .out = sum.data_ptr(),
                                  .num_rows = x.size(0),
                                  .num_outputs = weight.size(0),
                                  .num_inputs = x.size(1),
                                  .out_stride = weight.size(0),
                                  .element = Element::kHalf,
                                  .out_element = Element::kHalf,
                                  .addend = addend.data_ptr()},
                                 Stream())
                           .ok();
  return is_done ? sum : at::addmm(addend, x, weight.t());
}

// Either what `kept` has, or what `compute` returns, which is then kept. An alias: autograd makes
// the tensor its own.
template <typename Compute>
KeptResult OnceComputed(KeptResult* kept, const Compute& compute) {
  if (kept == nullptr) return compute();
  if (kept->empty()) *kept = compute();
  KeptResult results;
  for (const at::Tensor& result : *kept) results.push_back(result.detach());
  return results;
}

// Inputs: x, the residual (or empty), weights, biases. Saved: x and the rounded
// weights, which live as long as the layer's other activations.
class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& residual, at::TensorList parameters,
                            int64_t num_weights, KeptResult* kept) {
    const at::Tensor x = given.contiguous();
    const at::TensorList weights = parameters.slice(0, static_cast<size_t>(num_weights));
    const at::TensorList biases = parameters.slice(static_cast<size_t>(num_weights));
    const at::Tensor weight = Stacked(weights);
    std::vector<int64_t> sizes;
    for (const at::Tensor& part : weights) sizes.push_back(part.size(0));
    context->saved_data["sizes"] = sizes;
    context->saved_data["biases"] = !biases.empty();
    context->saved_data["residual"] = residual.numel() > 0;
    context->save_for_backward({x, weight});
    return OnceComputed(kept,
                        [&]() -> KeptResult {
                          if (residual.numel() > 0) {
                            const at::Tensor y = SumWithProduct(residual, x, weight);
                            return {biases.empty() ? y : y.add_(Stacked(biases))};
                          }
                          return {biases.empty() ? at::mm(x, weight.t())
                                                 : at::addmm(Stacked(biases), x, weight.t())};
                        })
        .front();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor g = gradients[0].contiguous();
    const std::vector<int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const bool has_residual = context->saved_data["residual"].toBool();
    variable_list out = {at::mm(g, saved[1]), has_residual ? g : at::Tensor()};
    // Sums over thousands of rows: rounded to bf16 they would lose small parts.
    const auto append_parts = [&](const at::Tensor& whole) {
      int64_t begin = 0;
      for (const int64_t size : sizes) {
        out.push_back(whole.narrow(0, begin, size));
        begin += size;
      }
    };
    append_parts(at::mm(g.t(), saved[0], at::kFloat));
    if (context->saved_data["biases"].toBool()) append_parts(g.sum({0}, false, at::kFloat));
    out.resize(out.size() + 2);
    return out;
  }
};

cuda::TrainingHeads HeadsOf(const at::Tensor& qkv, const at::Tensor& query_norm,
                            const at::Tensor& key_norm, const CudaSequences& sequences) {
  return {.qkv = qkv.data_ptr(),
          .num_heads = sequences.num_heads,
          .num_kv_heads = sequences.num_kv_heads,
          .head_dim = sequences.head_dim,
          .query_norm = Floats(query_norm),
          .key_norm = Floats(key_norm),
          .epsilon = static_cast<float>(sequences.norm_epsilon),
          .cosines = sequences.cosines.data_ptr<float>(),
          .sines = sequences.sines.data_ptr<float>(),
          .num_rows = qkv.size(0)};
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& query_norm, const at::Tensor& key_norm,
                            const c10::intrusive_ptr<CudaSequences>& sequences,
                            KeptResult* reused) {
    const CudaSequences& s = *sequences;
    const at::Tensor qkv = given.contiguous();
    const int64_t num_rows = qkv.size(0);
    const at::Tensor queries = at::empty({num_rows, s.num_heads, s.head_dim}, qkv.options());
    const at::Tensor keys = at::empty({num_rows, s.num_kv_heads, s.head_dim}, qkv.options());
    cuda::TurnForward(HeadsOf(qkv, query_norm, key_norm, s), queries.data_ptr(), keys.data_ptr(),
                      Stream());
    CheckLaunch();
    const std::vector<at::Tensor> kept = OnceComputed(
        reused, [&] { return s.attention.Forward({queries, keys, ValuesOf(qkv, s)}); });
    const at::Tensor& out = kept.front();
    variable_list saved = {qkv, query_norm, key_norm, queries, keys};
    saved.insert(saved.end(), kept.begin(), kept.end());
    context->save_for_backward(saved);
    context->saved_data["sequences"] = c10::IValue::make_capsule(sequences);
    return out.view({num_rows, -1});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto sequences = c10::static_intrusive_pointer_cast<CudaSequences>(
        context->saved_data["sequences"].toCapsule());
    const CudaSequences& s = *sequences;
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const at::Tensor& queries = saved[3];
    const AttentionInputs d = s.attention.Backward({queries, saved[4], ValuesOf(qkv, s)},
                                                   {saved.begin() + kNumInputs, saved.end()},
                                                   gradients[0].contiguous().view_as(queries));
    const at::Tensor d_qkv = at::empty_like(qkv);
    const bool has_norms = saved[1].numel() > 0;
    const at::Tensor partials =
        has_norms ? Partials(qkv, qkv.size(0), {2, s.head_dim}) : at::Tensor();
    cuda::TurnBackward(
        HeadsOf(qkv, saved[1], saved[2], s),
        {.queries = d.queries.data_ptr(), .keys = d.keys.data_ptr(), .values = d.values.data_ptr()},
        d_qkv.data_ptr(), has_norms ? Floats(partials) : nullptr, Stream());
    CheckLaunch();
    variable_list out = {d_qkv};
    if (has_norms) {
      const at::Tensor sums = SumOf(partials);
      out.push_back(sums[0]);
      out.push_back(sums[1]);
    }
    out.resize(kNumInputs);
    return out;
  }

 private:
  // As many are saved before what the attention itself keeps.
  static constexpr int kNumInputs = 5;

  static at::Tensor ValuesOf(const at::Tensor& qkv, const CudaSequences& s) {
    const int64_t begin = (s.num_heads + s.num_kv_heads) * s.head_dim;
    return qkv.narrow(1, begin, s.num_kv_heads * s.head_dim)
        .view({qkv.size(0), s.num_kv_heads, s.head_dim});
  }
};

cuda::LogitRows LogitRowsOf(const at::Tensor& logits, const at::Tensor& targets,
                            double temperature) {
  return {.logits = logits.data_ptr<float>(),
          .stride = logits.stride(0),
          .num_rows = logits.size(0),
          .vocabulary = logits.size(1),
          .targets = targets.data_ptr<int64_t>(),
          .scale = static_cast<float>(1 / temperature)};
}

}  // namespace

bool HasCudaNorm(const at::Tensor& x) {
  return IsCudaFloat(x) && x.numel() > 0 && x.size(-1) % cuda::kRowVector == 0 &&
         x.size(-1) <= cuda::kMaxNormWidth;
}

bool HasCudaGate(const at::Tensor& gate_up) {
  return IsCudaFloat(gate_up) && gate_up.numel() > 0 &&
         gate_up.size(-1) % (2 * cuda::kRowVector) == 0;
}

void CudaNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, const at::Tensor& y) {
  cuda::NormForward(NormOf(x, weight, epsilon), y.data_ptr(), Stream());
  CheckLaunch();
}

at::Tensor CudaNormGradient(const at::Tensor& g, const at::Tensor& x, const at::Tensor& weight,
                            double epsilon, const at::Tensor& addend, const at::Tensor& dx) {
  const cuda::TrainingNorm norm = NormOf(x, weight, epsilon);
  const at::Tensor partials = Partials(x, norm.num_rows, {norm.width});
  cuda::NormBackward(norm, g.data_ptr(), addend.defined() ? addend.data_ptr() : nullptr,
                     dx.data_ptr(), Floats(partials), Stream());
  CheckLaunch();
  return SumOf(partials);
}

void CudaGate(const at::Tensor& gate_up, const at::Tensor& y) {
  cuda::GateForward(GateOf(gate_up), y.data_ptr(), Stream());
  CheckLaunch();
}

void CudaGateGradient(const at::Tensor& g, const at::Tensor& gate_up, const at::Tensor& d_gate_up) {
  cuda::GateBackward(GateOf(gate_up), g.data_ptr(), d_gate_up.data_ptr(), Stream());
  CheckLaunch();
}

bool HasCudaProducts(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16;
}

at::Tensor CudaLinear(const at::Tensor& x, const CudaProduct& product) {
  variable_list parameters = product.weights;
  PACE_CHECK(product.biases.empty() || product.biases.size() == product.weights.size(),
             "some have a bias, some do not");
  parameters.insert(parameters.end(), product.biases.begin(), product.biases.end());
  const at::Tensor residual =
      product.residual.defined() ? product.residual : at::empty({0}, x.options());
  return LinearFunction::apply(x, residual, at::TensorList(parameters),
                               static_cast<int64_t>(product.weights.size()), product.kept);
}

bool HasCudaAttention(const ModelConfig& config, at::ScalarType dtype, at::Device device) {
  return device.is_cuda() && dtype == at::kBFloat16 && config.head_dim % 8 == 0 &&
         config.head_dim <= cuda::kMaxHeadDim;
}

CudaSequences::CudaSequences(const ModelConfig& config, const std::vector<int64_t>& lengths,
                             const at::Tensor& cos, const at::Tensor& sin)
    : num_heads(static_cast<int>(config.num_heads)),
      num_kv_heads(static_cast<int>(config.num_kv_heads)),
      head_dim(static_cast<int>(config.head_dim)),
      norm_epsilon(config.norm_epsilon),
      cosines(cos.contiguous()),
      sines(sin.contiguous()),
      attention({.num_heads = config.num_heads,
                 .num_kv_heads = config.num_kv_heads,
                 .head_dim = config.head_dim,
                 .value_stride = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim},
                lengths, cos.device()) {}

at::Tensor CudaAttend(const at::Tensor& qkv, const at::Tensor& query_norm,
                      const at::Tensor& key_norm,
                      const c10::intrusive_ptr<CudaSequences>& sequences, KeptResult* kept) {
  return AttentionFunction::apply(qkv, OrEmpty(query_norm, qkv), OrEmpty(key_norm, qkv), sequences,
                                  kept);
}

bool HasCudaLogits(const at::Tensor& logits) {
  return logits.is_cuda() && logits.scalar_type() == at::kFloat && logits.stride(1) == 1;
}

void CudaScoreLogits(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                     const at::Tensor& logprobs, const at::Tensor& log_sums,
                     const at::Tensor& entropies) {
  cuda::ScoreLogitRows(LogitRowsOf(logits, targets, temperature), Floats(logprobs),
                       Floats(log_sums), Floats(entropies), Stream());
  CheckLaunch();
}

at::Tensor CudaLogitGradients(const at::Tensor& logits, const at::Tensor& targets,
                              double temperature, const at::Tensor& log_sums,
                              const at::Tensor& entropies, const at::Tensor& of_logprob,
                              const at::Tensor& of_entropy, at::ScalarType dtype) {
  const at::Tensor out = at::empty(logits.sizes(), logits.options().dtype(dtype));
  cuda::LogitRowsBackward(LogitRowsOf(logits, targets, temperature),
                          {.log_sums = Floats(log_sums),
                           .entropies = Floats(entropies),
                           .of_logprob = Floats(of_logprob),
                           .of_entropy = of_entropy.defined() ? Floats(of_entropy) : nullptr},
                          out.data_ptr(), ElementOf(out), Stream());
  CheckLaunch();
  return out;
}

bool HasCudaAdamW(const at::Tensor& parameter) {
  return parameter.is_cuda() && parameter.scalar_type() == at::kFloat && parameter.is_contiguous();
}

void CudaAdamWStep(const CudaAdamW& update, const at::Tensor& parameter, const at::Tensor& gradient,
                   const at::Tensor& first, const at::Tensor& second) {
  const auto count = static_cast<double>(update.num_updates);
  const double of_first = 1 - std::pow(update.beta1, count);
  const double of_second = 1 - std::pow(update.beta2, count);
  cuda::ApplyAdamW({.parameter = Floats(parameter),
                    .gradient = Floats(gradient),
                    .first = Floats(first),
                    .second = Floats(second),
                    .count = parameter.numel(),
                    .gradient_factor = static_cast<float>(update.gradient_factor),
                    .beta1 = static_cast<float>(update.beta1),
                    .beta2 = static_cast<float>(update.beta2),
                    .epsilon = static_cast<float>(update.epsilon),
                    .decay = static_cast<float>(update.learning_rate * update.weight_decay),
                    .step_size = static_cast<float>(update.learning_rate / of_first),
                    .root_correction = static_cast<float>(std::sqrt(of_second))},
                   Stream());
  CheckLaunch();
}

double CudaSumOfSquares(const std::vector<at::Tensor>& tensors) {
  int64_t num_partials = 0;
  for (const at::Tensor& x : tensors) num_partials += cuda::NumSquarePartials(x.numel());
  const at::Tensor partials =
      at::empty({num_partials}, tensors.front().options().dtype(at::kDouble));
  double* next = partials.data_ptr<double>();
  for (const at::Tensor& x : tensors) {
    cuda::SumSquares(Floats(x), x.numel(), next, Stream());
    CheckLaunch();
    next += cuda::NumSquarePartials(x.numel());
  }
  return partials.sum().item<double>();
}

void FinishCudaWork() {
  c10::cuda::getCurrentCUDAStream().synchronize();
}

Status LimitTrainingMemory(int64_t num_bytes) {
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    return Unavailable("device = cuda: no GPU");
  }
  at::globalContext().lazyInitDevice(at::kCUDA);
  UseGrowingSegments();
  training_limit = num_bytes - kNumProductThreads * kProductWorkspaceBytes;
  const double share =
      std::min(1.0, static_cast<double>(training_limit) / static_cast<double>(total));
  c10::cuda::CUDACachingAllocator::setMemoryFraction(share, c10::cuda::current_device());
  return Status::Ok();
}

int64_t FreeTrainingMemory(bool sizes_change) {
  const Held held = HeldByTraining();
  size_t free = 0;
  size_t total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const int64_t limit = std::min<int64_t>(training_limit, static_cast<int64_t>(total));
  const int64_t may_hold = std::min(limit, static_cast<int64_t>(free) + held.reserved);
  const auto share = static_cast<int64_t>(kMarginShare * static_cast<double>(limit));
  return may_hold - held.allocated - share - kMarginBytes - (sizes_change ? kGapBytes : 0);
}

int64_t MostTrainingMemory() {
  return HeldByTraining().most + product_workspaces;
}

void ReleaseTrainingMemory() {
  at::globalContext().lazyInitDevice(at::kCUDA);
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::CUDACachingAllocator::resetPeakStats(c10::cuda::current_device());
}

struct CudaStopwatch::State {
  State() {
    C10_CUDA_CHECK(cudaEventCreate(&begin));
    C10_CUDA_CHECK(cudaEventCreate(&end));
  }
  ~State() {
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

CudaStopwatch::CudaStopwatch() : state_(std::make_unique<State>()) {}
CudaStopwatch::~CudaStopwatch() = default;

void CudaStopwatch::Start() {
  C10_CUDA_CHECK(cudaEventRecord(state_->begin, Stream()));
}

double CudaStopwatch::Stop() {
  C10_CUDA_CHECK(cudaEventRecord(state_->end, Stream()));
  C10_CUDA_CHECK(cudaEventSynchronize(state_->end));
  float milliseconds = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, state_->begin, state_->end));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace pace
