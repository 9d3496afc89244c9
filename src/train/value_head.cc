#include "train/value_head.h"

namespace pace {
namespace {

constexpr const char* kWeight = "value_head.weight";
constexpr const char* kBias = "value_head.bias";

std::vector<NamedTensors> MakeCopies(int64_t hidden_size, const at::TensorOptions& tensors,
                                     int64_t count) {
  const at::Tensor weight = at::zeros({1, hidden_size}, tensors);
  const at::Tensor bias = at::zeros({1}, tensors);
  std::vector<NamedTensors> copies;
  for (int64_t i = 0; i < count; ++i) {
    copies.push_back({{kWeight, weight.detach().set_requires_grad(true)},
                      {kBias, bias.detach().set_requires_grad(true)}});
  }
  return copies;
}

}  // namespace

ValueHead::ValueHead(int64_t hidden_size, const at::TensorOptions& tensors,
                     const AdamWOptions& adamw, int64_t num_threads)
    : copies_(MakeCopies(hidden_size, tensors, num_threads)), optimizer_(copies_.front(), adamw) {}

at::Tensor ValueHead::Values(size_t thread, const at::Tensor& hidden_NH) const {
  const NamedTensors& own = copies_[thread];
  const at::Tensor& weight = own.at(kWeight);
  return at::linear(hidden_NH.to(weight.scalar_type()), weight, own.at(kBias)).squeeze(1);
}

void ValueHead::ZeroGradients() {
  for (const NamedTensors& copy : copies_) FreeGradients(copy);
}

Result<double> ValueHead::GatherGradients(Communicator* ranks) {
  for (size_t i = 1; i < copies_.size(); ++i) AddGradients(copies_[i], copies_.front());
  if (ranks != nullptr && ranks->size() > 1) {
    for (const auto& [name, parameter] : copies_.front()) {
      at::Tensor own = parameter;
      if (!own.grad().defined()) own.mutable_grad() = at::zeros_like(own.detach());
      PACE_RETURN_IF_ERROR(ranks->AllReduce(own.grad()));
    }
  }
  return GradientNorm(copies_.front());
}

NamedTensors ValueHead::State() const {
  NamedTensors state = optimizer_.State();
  for (const auto& [name, parameter] : copies_.front()) state.emplace(name, parameter.detach());
  return state;
}

Status ValueHead::Restore(const NamedTensors& state, int64_t num_updates) {
  PACE_RETURN_IF_ERROR(optimizer_.Restore(state, num_updates));
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : copies_.front()) {
    const auto found = state.find(name);
    if (found == state.end()) return NotFound("trainer state: ", name, " is missing");
    if (found->second.sizes() != parameter.sizes()) {
      return InvalidArgument("trainer state: ", name, " has another shape than the head");
    }
    parameter.detach().copy_(found->second);
  }
  return Status::Ok();
}

}  // namespace pace
