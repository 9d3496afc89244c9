#include "model/torch/product_function.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cstddef>

#include "core/check.h"
#include "model/cpu/kernels/isa.h"

namespace pace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The type that products of x are computed in.
at::ScalarType ProductType(const at::Tensor& x) {
  const bool in_floats =
      x.device().is_cpu() && x.scalar_type() == at::kBFloat16 && !TorchHasBf16Products();
  return in_floats ? at::kFloat : x.scalar_type();
}

// One above the other, rounded to `rounded`, of type `type`.
at::Tensor Stacked(at::TensorList parameters, at::ScalarType rounded, at::ScalarType type) {
  if (parameters.size() == 1) return parameters.front().to(rounded).to(type);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : parameters) parts.push_back(parameter.to(rounded).to(type));
  return at::cat(parts);
}

class ProductFunction : public torch::autograd::Function<ProductFunction> {
 public:
  // The weights stand before the biases; an empty residual is none.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& residual, at::TensorList parameters,
                            int64_t num_weights, at::ScalarType rounded) {
    const auto count = static_cast<size_t>(num_weights);
    const at::TensorList biases = parameters.slice(count);
    const bool has_residual = residual.numel() > 0;
    const at::Tensor weight = Stacked(parameters.slice(0, count), rounded, x.scalar_type());
    variable_list kept = {x};
    kept.insert(kept.end(), parameters.begin(), parameters.begin() + num_weights);
    context->save_for_backward(kept);
    context->saved_data["rounded"] = rounded;
    context->saved_data["residual"] = has_residual;
    context->saved_data["biases"] = !biases.empty();
    if (has_residual) return at::addmm(residual, x, weight.t());
    return biases.empty() ? at::linear(x, weight)
                          : at::linear(x, weight, Stacked(biases, rounded, x.scalar_type()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list kept = context->get_saved_variables();
    const at::Tensor& x = kept.front();
    const at::Tensor& g = gradients.front();
    const at::TensorList weights = at::TensorList(kept).slice(1);
    const at::ScalarType rounded = context->saved_data["rounded"].toScalarType();
    variable_list out;
    out.push_back(g.mm(Stacked(weights, rounded, x.scalar_type())));
    out.push_back(context->saved_data["residual"].toBool() ? g : at::Tensor());
    const auto append_parts = [&](const at::Tensor& whole) {
      int64_t begin = 0;
      for (const at::Tensor& weight : weights) {
        const at::Tensor part = whole.narrow(0, begin, weight.size(0));
        out.push_back(part.to(rounded).to(weight.scalar_type()));
        begin += weight.size(0);
      }
    };
    append_parts(g.t().mm(x));
    if (context->saved_data["biases"].toBool()) append_parts(g.sum(0));
    out.resize(out.size() + 2);
    return out;
  }
};

}  // namespace

at::Tensor ProductOfRows(const at::Tensor& x, const RowProduct& product) {
  PACE_CHECK(product.biases.empty() || product.biases.size() == product.weights.size(),
             "some have a bias, some do not");
  PACE_CHECK(product.biases.empty() || !product.residual.defined(), "a residual and a bias");
  const at::ScalarType type = ProductType(x);
  std::vector<at::Tensor> parameters = product.weights;
  parameters.insert(parameters.end(), product.biases.begin(), product.biases.end());
  const at::Tensor rows = x.to(type);
  const at::Tensor residual =
      product.residual.defined() ? product.residual.to(type) : at::empty({0}, rows.options());
  return ProductFunction::apply(rows, residual, at::TensorList(parameters),
                                static_cast<int64_t>(product.weights.size()), x.scalar_type())
      .to(x.scalar_type());
}

}  // namespace pace
