#include "model/torch/row_functions.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "model/cpu/gradient/training_kernels.h"
#include "model/cuda/train/training_functions.h"

namespace pace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor Widened(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

const TrainingKernels& Table() {
  return TrainingKernelsOf(BestIsa());
}

void Norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, const at::Tensor& y) {
  if (x.is_cuda()) return CudaNorm(x, weight, epsilon, y);
  WithElements(x, [&](auto zero) {
    using T = decltype(zero);
    Table().of<T>().norm(DataOf<T>(x), weight.data_ptr<float>(), static_cast<float>(epsilon),
                         x.numel() / x.size(-1), x.size(-1), DataOf<T>(y));
  });
}

// Fills dx; returns the gradient of the weight.
at::Tensor NormGradient(const at::Tensor& g, const at::Tensor& x, const at::Tensor& weight,
                        double epsilon, const at::Tensor& dx) {
  if (x.is_cuda()) return CudaNormGradient(g, x, weight, epsilon, /*addend=*/{}, dx);
  at::Tensor dw = at::zeros_like(weight);
  WithElements(x, [&](auto zero) {
    using T = decltype(zero);
    Table().of<T>().norm_gradient(DataOf<T>(g), DataOf<T>(x), weight.data_ptr<float>(),
                                  static_cast<float>(epsilon), x.numel() / x.size(-1), x.size(-1),
                                  DataOf<T>(dx), dw.data_ptr<float>());
  });
  return dw;
}

void Gate(const at::Tensor& gate_up, const at::Tensor& y) {
  if (y.is_cuda()) return CudaGate(gate_up, y);
  WithElements(y, [&](auto zero) {
    using T = decltype(zero);
    Table().of<T>().gated(DataOf<T>(gate_up), y.numel() / y.size(-1), y.size(-1), DataOf<T>(y));
  });
}

void GateGradient(const at::Tensor& g, const at::Tensor& gate_up, const at::Tensor& d_gate_up) {
  if (g.is_cuda()) return CudaGateGradient(g, gate_up, d_gate_up);
  WithElements(g, [&](auto zero) {
    using T = decltype(zero);
    Table().of<T>().gated_gradient(DataOf<T>(g), DataOf<T>(gate_up), g.numel() / g.size(-1),
                                   g.size(-1), DataOf<T>(d_gate_up));
  });
}

class RmsNormFunction : public torch::autograd::Function<RmsNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& given_weight, double epsilon) {
    const at::Tensor x = given.contiguous();
    const at::Tensor weight = given_weight.contiguous();
    at::Tensor y = at::empty_like(x);
    Norm(x, weight, epsilon, y);
    context->save_for_backward({x, weight});
    context->saved_data["epsilon"] = epsilon;
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor dx = at::empty_like(x);
    const at::Tensor dw = NormGradient(gradients[0].contiguous(), x, saved[1],
                                       context->saved_data["epsilon"].toDouble(), dx);
    return {dx, dw, at::Tensor()};
  }
};

// The norm and x, on a GPU.
class NormBesideFunction : public torch::autograd::Function<NormBesideFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& given,
                               const at::Tensor& given_weight, double epsilon) {
    const at::Tensor x = given.contiguous();
    const at::Tensor weight = given_weight.contiguous();
    const at::Tensor y = at::empty_like(x);
    CudaNorm(x, weight, epsilon, y);
    context->save_for_backward({x, weight});
    context->saved_data["epsilon"] = epsilon;
    // Where nothing else used x, its gradient is undefined.
    context->set_materialize_grads(false);
    return {y, at::alias(given)};
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    if (!gradients[0].defined()) return {gradients[1], at::Tensor(), at::Tensor()};
    const at::Tensor of_x = gradients[1].defined() ? gradients[1].contiguous() : at::Tensor();
    const at::Tensor dx = at::empty_like(x);
    const at::Tensor dw = CudaNormGradient(gradients[0].contiguous(), x, saved[1],
                                           context->saved_data["epsilon"].toDouble(), of_x, dx);
    return {dx, dw, at::Tensor()};
  }
};

class GateFunction : public torch::autograd::Function<GateFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given) {
    const at::Tensor gate_up = given.contiguous();
    std::vector<int64_t> sizes = gate_up.sizes().vec();
    sizes.back() /= 2;
    at::Tensor y = at::empty(sizes, gate_up.options());
    Gate(gate_up, y);
    context->save_for_backward({gate_up});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gate_up = context->get_saved_variables().front();
    const at::Tensor d = at::empty_like(gate_up);
    GateGradient(gradients[0].contiguous(), gate_up, d);
    return {d};
  }
};

}  // namespace

bool HasKernels(const at::Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

at::Tensor ComposedRmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor wide = Widened(x);
  const at::Tensor scale = at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + epsilon);
  return weight.to(x.scalar_type()) * (wide * scale).to(x.scalar_type());
}

at::Tensor ComposedGate(const at::Tensor& gate_up) {
  const std::vector<at::Tensor> halves = gate_up.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

at::Tensor RmsNormRows(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (!HasKernels(x) && !HasCudaNorm(x)) return ComposedRmsNorm(x, weight, epsilon);
  return RmsNormFunction::apply(x, weight.to(at::kFloat), epsilon);
}

NormedRows RmsNormBeside(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (!HasCudaNorm(x)) return {.norm = RmsNormRows(x, weight, epsilon), .x = x};
  const variable_list both = NormBesideFunction::apply(x, weight.to(at::kFloat), epsilon);
  return {.norm = both[0], .x = both[1]};
}

at::Tensor GatedRows(const at::Tensor& gate_up) {
  if (!HasKernels(gate_up) && !HasCudaGate(gate_up)) return ComposedGate(gate_up);
  return GateFunction::apply(gate_up);
}

}  // namespace pace
