#include "train/adamw.h"

#include <cmath>

#include "model/cuda/train/training_functions.h"

namespace pace {

AdamW::AdamW(const NamedTensors& parameters, const AdamWOptions& options) : options_(options) {
  for (const auto& [name, parameter] : parameters) {
    names_.push_back(name);
    parameters_.push_back(parameter);
    first_.push_back(at::zeros_like(parameter, at::MemoryFormat::Contiguous));
    second_.push_back(at::zeros_like(parameter, at::MemoryFormat::Contiguous));
    counts_.push_back(at::zeros({}, parameter.options().dtype(at::kFloat)));
  }
}

void AdamW::Step(double learning_rate, double factor) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> first;
  std::vector<at::Tensor> second;
  std::vector<at::Tensor> counts;
  ++num_updates_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    // The count rises for every parameter, also for an expert that saw no token.
    counts_[i].fill_(static_cast<double>(num_updates_));
    if (!parameters_[i].grad().defined()) continue;
    if (HasCudaAdamW(parameters_[i])) {
      CudaAdamWStep({.learning_rate = learning_rate,
                     .beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .epsilon = options_.epsilon,
                     .weight_decay = options_.weight_decay,
                     .num_updates = num_updates_,
                     .gradient_factor = factor},
                    parameters_[i], parameters_[i].grad().contiguous(), first_[i], second_[i]);
      continue;
    }
    if (factor != 1) parameters_[i].mutable_grad().mul_(factor);
    parameters.push_back(parameters_[i].detach());
    gradients.push_back(parameters_[i].grad());
    first.push_back(first_[i]);
    second.push_back(second_[i]);
    counts.push_back(counts_[i]);
  }
  if (parameters.empty()) return;
  at::_fused_adamw_(parameters, gradients, first, second, /*max_exp_avg_sqs=*/{}, counts,
                    learning_rate, options_.beta1, options_.beta2, options_.weight_decay,
                    options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

NamedTensors AdamW::State() const {
  NamedTensors state;
  for (size_t i = 0; i < names_.size(); ++i) {
    state.emplace(names_[i] + ".m", first_[i]);
    state.emplace(names_[i] + ".v", second_[i]);
  }
  return state;
}

Status AdamW::Restore(const NamedTensors& state, int64_t num_updates) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, own] : State()) {
    const auto found = state.find(name);
    if (found == state.end()) return NotFound("optimizer state: ", name, " is missing");
    if (found->second.sizes() != own.sizes()) {
      return InvalidArgument("optimizer state: ", name, " has another shape than its parameter");
    }
    // State() shares storage: this writes into the moments.
    at::Tensor(own).copy_(found->second);
  }
  num_updates_ = num_updates;
  return Status::Ok();
}

double GradientNorm(const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms;
  std::vector<at::Tensor> on_gpu;
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.grad().defined()) continue;
    if (HasCudaAdamW(parameter)) {
      on_gpu.push_back(parameter.grad().contiguous());
      continue;
    }
    norms.push_back(at::linalg_vector_norm(parameter.grad(), 2, {}, false, at::kDouble));
  }
  double sum = on_gpu.empty() ? 0 : CudaSumOfSquares(on_gpu);
  if (norms.empty()) return std::sqrt(sum);
  // One wait for a GPU, not one for each.
  const at::Tensor all = at::stack(norms).to(at::kCPU);
  for (int64_t i = 0; i < all.numel(); ++i) {
    const double norm = all.data_ptr<double>()[i];
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

double GradientFactor(double norm, double max_norm) {
  const bool clips = max_norm > 0 && std::isfinite(norm) && norm > max_norm;
  return clips ? max_norm / (norm + 1e-6) : 1;
}

void AddGradients(const NamedTensors& from, const NamedTensors& to) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : from) {
    if (!parameter.grad().defined()) continue;
    at::Tensor own = to.at(name);
    if (own.grad().defined()) {
      own.mutable_grad().add_(parameter.grad());
    } else {
      own.mutable_grad() = parameter.grad();
    }
  }
}

void FreeGradients(const NamedTensors& parameters) {
  for (const auto& [name, parameter] : parameters) {
    at::Tensor(parameter).mutable_grad() = at::Tensor();
  }
}

}  // namespace pace
