#include "model/torch/product_function.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "model/cpu/kernels/isa.h"

namespace pace {
namespace {

at::Tensor ProductWave(at::IntArrayRef shape, double step, at::ScalarType dtype = at::kFloat) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kDouble) * step).view(shape).to(dtype);
}

struct Case {
  at::Tensor x;
  RowProduct product;

  std::vector<at::Tensor> Leaves() const {
    std::vector<at::Tensor> leaves = {x};
    leaves.insert(leaves.end(), product.weights.begin(), product.weights.end());
    leaves.insert(leaves.end(), product.biases.begin(), product.biases.end());
    if (product.residual.defined()) leaves.push_back(product.residual);
    return leaves;
  }
};

Case Make(int64_t num_weights, bool has_biases, bool has_residual, at::ScalarType type,
          at::ScalarType of_weights) {
  Case made;
  made.x = ProductWave({5, 8}, 0.3, type).set_requires_grad(true);
  int64_t width = 0;
  for (int64_t i = 0; i < num_weights; ++i) {
    const int64_t rows = 4 + 2 * i;
    width += rows;
    made.product.weights.push_back(
        ProductWave({rows, 8}, 0.7 + 0.1 * static_cast<double>(i), of_weights)
            .set_requires_grad(true));
    if (!has_biases) continue;
    made.product.biases.push_back(
        ProductWave({rows}, 1.3 + 0.1 * static_cast<double>(i), of_weights)
            .set_requires_grad(true));
  }
  if (has_residual)
    made.product.residual = ProductWave({5, width}, 0.2, type).set_requires_grad(true);
  return made;
}

// As LibTorch's graph computes it.
at::Tensor Composed(const Case& given) {
  const at::ScalarType rounded = given.x.scalar_type();
  const bool in_floats = rounded == at::kBFloat16 && !TorchHasBf16Products();
  const at::ScalarType type = in_floats ? at::kFloat : rounded;
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;
  for (const at::Tensor& w : given.product.weights) weights.push_back(w.to(rounded));
  for (const at::Tensor& b : given.product.biases) biases.push_back(b.to(rounded));
  const at::Tensor weight = (weights.size() == 1 ? weights[0] : at::cat(weights)).to(type);
  const at::Tensor x = given.x.to(type);
  if (given.product.residual.defined()) {
    return at::addmm(given.product.residual.to(type), x, weight.t()).to(rounded);
  }
  if (biases.empty()) return at::linear(x, weight).to(rounded);
  return at::linear(x, weight, (biases.size() == 1 ? biases[0] : at::cat(biases)).to(type))
      .to(rounded);
}

std::vector<at::Tensor> Gradients(const at::Tensor& y, const Case& given) {
  return torch::autograd::grad({y}, given.Leaves(), {ProductWave(y.sizes(), 0.9, y.scalar_type())});
}

TEST(ProductFunctionTest, ResultsAndGradientsAreThoseOfTheComposedProductInEveryBit) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const int64_t num_weights : {1, 2, 3}) {
      for (const int form : {0, 1, 2}) {
        const Case given = Make(num_weights, form == 1, form == 2, type,
                                type == at::kBFloat16 ? at::kFloat : type);
        const at::Tensor expected = Composed(given);
        const at::Tensor y = ProductOfRows(given.x, given.product);
        EXPECT_TRUE(at::equal(y, expected)) << type << " " << num_weights << " " << form;
        const std::vector<at::Tensor> wanted = Gradients(expected, given);
        const std::vector<at::Tensor> found = Gradients(y, given);
        ASSERT_EQ(found.size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_EQ(found[i].scalar_type(), wanted[i].scalar_type());
          EXPECT_TRUE(at::equal(found[i], wanted[i]))
              << type << " " << num_weights << " " << form << " leaf " << i;
        }
      }
    }
  }
}

TEST(ProductFunctionTest, ParametersMayLeaveBetweenThePasses) {
  const Case given = Make(2, /*has_biases=*/false, /*has_residual=*/false, at::kFloat, at::kFloat);
  const std::vector<at::Tensor> wanted = Gradients(Composed(given), given);
  const at::Tensor y = ProductOfRows(given.x, given.product);
  std::vector<at::Tensor> copies;
  for (const at::Tensor& weight : given.product.weights) {
    copies.push_back(weight.detach().clone());
    // A copy: the parameter gets other data.
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
    const at::Storage storage = weight.storage();
    weight.set_data(at::empty({0}));
    EXPECT_EQ(storage.use_count(), 1U) << "the graph keeps the weights";
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    at::Tensor(given.product.weights[i]).set_data(copies[i]);
  }
  const std::vector<at::Tensor> found = Gradients(y, given);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(found[i], wanted[i])) << i;
}

}  // namespace
}  // namespace pace
