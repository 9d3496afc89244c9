#include "model/torch/training_network.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/check.h"
#include "model/cuda/train/training_functions.h"
#include "model/network.h"
#include "model/recompute_plan.h"
#include "model/torch/torch_ops.h"

namespace pace {
namespace {

// Torch's messages carry a stack trace below their first line.
std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

at::Tensor ToTensor(const TensorView& view, const TrainingNetwork::Options& options) {
  at::Tensor values = at::empty(view.shape, at::kFloat);
  ReadFloats(view, {values.data_ptr<float>(), static_cast<size_t>(values.numel())});
  return values.to(options.device, options.dtype);
}

}  // namespace

struct TrainingNetwork::State {
  ModelConfig config;
  std::map<std::string, at::Tensor> parameters;
  NetworkWeights<TorchOps> weights;
  at::Tensor frequencies;
  TorchOps::Options ops_options;
  PassSizes pass_sizes;  // of passes with recomputed layers
};

TrainingNetwork::TrainingNetwork(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrainingNetwork::TrainingNetwork(TrainingNetwork&&) noexcept = default;
TrainingNetwork& TrainingNetwork::operator=(TrainingNetwork&&) noexcept = default;
TrainingNetwork::~TrainingNetwork() = default;

Result<TrainingNetwork> TrainingNetwork::Build(
    const ModelConfig& config, const Options& options,
    const std::function<at::Tensor(const Parameter&)>& parameter_values) {
  try {
    auto state = std::make_unique<State>();
    state->config = config;
    state->ops_options = {.dtype = options.compute_in_bf16 ? at::kBFloat16 : options.dtype,
                          .recompute_layers = options.recompute_layers};
    for (const Parameter& parameter : ParametersOf(config)) {
      state->parameters.emplace(parameter.name,
                                parameter_values(parameter).set_requires_grad(true));
    }
    TorchLoader loader(state->parameters);
    state->weights = LoadNetwork<TorchOps>(config, loader);
    state->frequencies = at::tensor(RopeFrequencies(config)).to(options.device);
    return TrainingNetwork(std::move(state));
  } catch (const std::exception& error) {
    return Unavailable("the network cannot be built on ", options.device.str(), ": ",
                       FirstLine(error));
  }
}

Result<TrainingNetwork> TrainingNetwork::Create(const ModelConfig& config, const WeightSet& weights,
                                                const Options& options) {
  return Build(config, options, [&](const Parameter& parameter) {
    return ToTensor(weights.Get(parameter.name), options);
  });
}

Result<TrainingNetwork> TrainingNetwork::CreateRandom(const ModelConfig& config, uint64_t seed,
                                                      double deviation, const Options& options) {
  at::Generator generator = at::globalContext().defaultGenerator(options.device).clone();
  generator.set_current_seed(seed);
  return Build(config, options, [&](const Parameter& parameter) {
    const at::Tensor values = at::empty(parameter.shape, at::TensorOptions(options.device));
    const bool is_norm = parameter.name.find("norm") != std::string::npos;
    (is_norm ? values.fill_(1.0) : values.normal_(0, deviation, generator));
    return values.to(options.dtype);
  });
}

TrainingNetwork TrainingNetwork::Replica() const {
  auto state = std::make_unique<State>();
  state->config = state_->config;
  state->ops_options = state_->ops_options;
  state->frequencies = state_->frequencies;
  for (const auto& [name, parameter] : state_->parameters) {
    state->parameters.emplace(name, parameter.detach().set_requires_grad(true));
  }
  TorchLoader loader(state->parameters);
  state->weights = LoadNetwork<TorchOps>(state->config, loader);
  return TrainingNetwork(std::move(state));
}

void TrainingNetwork::UseLayerHooks(LayerHooks* hooks, bool weights_leave) {
  TorchOps::Options& options = state_->ops_options;
  const bool keeps_copies =
      HasCudaProducts(at::empty({0}, head_VH().options().dtype(options.dtype)));
  options.hooks = hooks;
  options.recompute_layers = options.recompute_layers || (weights_leave && keeps_copies);
}

const ModelConfig& TrainingNetwork::config() const {
  return state_->config;
}

const std::map<std::string, at::Tensor>& TrainingNetwork::parameters() const {
  return state_->parameters;
}

at::Tensor TrainingNetwork::Hidden(const PackedTokens& batch,
                                   std::vector<RoutingRecord>* routing) const {
  TorchOps::Options options = state_->ops_options;
  // With hooks, parameters come and go in the pass.
  if (options.recompute_layers && options.hooks == nullptr && head_VH().is_cuda()) {
    const auto num_rows = static_cast<int64_t>(batch.tokens.size());
    const int64_t free = FreeTrainingMemory(state_->pass_sizes.Change(num_rows));
    options.kept_bytes = std::max<int64_t>(0, free - PassBytes(state_->config, num_rows));
  }
  const auto ops =
      std::make_shared<TorchOps>(state_->config, batch, state_->frequencies, options, routing);
  return RunNetwork(state_->weights, *ops).parts.front();
}

at::Tensor TrainingNetwork::Logits(const at::Tensor& hidden_TH) const {
  return at::linear(hidden_TH, head_VH().to(hidden_TH.scalar_type()));
}

const at::Tensor& TrainingNetwork::head_VH() const {
  return state_->weights.head.front().weight;
}

WeightSet TrainingNetwork::Weights() const {
  auto tensors = std::make_shared<std::vector<at::Tensor>>();
  TensorViews views;
  for (const auto& [name, parameter] : state_->parameters) {
    const at::Tensor& values =
        tensors->emplace_back(parameter.detach().to(at::kCPU, at::kFloat).contiguous());
    const std::span<const float> floats(values.data_ptr<float>(),
                                        static_cast<size_t>(values.numel()));
    views.emplace(name, TensorView{.dtype = Dtype::kF32,
                                   .shape = values.sizes().vec(),
                                   .bytes = std::as_bytes(floats)});
  }
  Result<WeightSet> set = WeightSet::Create(state_->config, std::move(views), std::move(tensors));
  PACE_CHECK(set.ok(), set.status().message());
  return std::move(*set);
}

WeightSet TrainingNetwork::DeviceWeights(Dtype dtype) const {
  const at::NoGradGuard no_grad;
  const bool in_bf16 = dtype == Dtype::kBF16;
  auto tensors = std::make_shared<std::vector<at::Tensor>>();
  TensorViews views;
  for (const auto& [name, parameter] : state_->parameters) {
    const at::Tensor& values = tensors->emplace_back(parameter.detach().to(
        in_bf16 ? at::kBFloat16 : at::kFloat, /*non_blocking=*/false, /*copy=*/true));
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(values.data_ptr()),
                                           values.nbytes());
    views.emplace(name, TensorView{.dtype = dtype, .shape = values.sizes().vec(), .bytes = bytes});
  }
  const bool on_gpu = head_VH().is_cuda();
  // Readers have streams of their own.
  if (on_gpu) FinishCudaWork();
  Result<WeightSet> set = WeightSet::Create(state_->config, std::move(views), std::move(tensors),
                                            on_gpu ? Residence::kDevice : Residence::kHost);
  PACE_CHECK(set.ok(), set.status().message());
  return std::move(*set);
}

}  // namespace pace
