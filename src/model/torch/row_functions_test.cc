#include "model/torch/row_functions.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace pace {
namespace {

at::Tensor Wave(at::IntArrayRef sizes, double phase) {
  return (at::arange(c10::multiply_integers(sizes), at::kDouble) * 0.7 + phase)
      .sin()
      .view(sizes)
      .to(at::kFloat);
}

double Difference(const at::Tensor& left, const at::Tensor& right) {
  return (left - right).abs().max().item<double>();
}

TEST(RowFunctionsTest, TheNormAndItsGradientsAreThoseOfTheComposition) {
  for (const int64_t size : {1, 7, 16, 33, 128}) {
    const at::Tensor x = Wave({5, 3, size}, 0.2).set_requires_grad(true);
    const at::Tensor weight = Wave({size}, 1.4).set_requires_grad(true);
    const at::Tensor y = RmsNormRows(x, weight, 1e-6);
    const at::Tensor g = Wave({5, 3, size}, 2.5);
    torch::autograd::backward({y}, {g});
    const at::Tensor x2 = x.detach().clone().set_requires_grad(true);
    const at::Tensor weight2 = weight.detach().clone().set_requires_grad(true);
    const at::Tensor y2 = ComposedRmsNorm(x2, weight2, 1e-6);
    torch::autograd::backward({y2}, {g});
    EXPECT_LT(Difference(y, y2), 2e-6) << size;
    EXPECT_LT(Difference(x.grad(), x2.grad()), 1e-5) << size;
    EXPECT_LT(Difference(weight.grad(), weight2.grad()), 1e-5) << size;
  }
}

TEST(RowFunctionsTest, TheGateAndItsGradientAreThoseOfTheComposition) {
  for (const int64_t size : {1, 7, 16, 33, 128}) {
    const at::Tensor x = Wave({6, 2 * size}, 0.9).set_requires_grad(true);
    const at::Tensor g = Wave({6, size}, 2.2);
    const at::Tensor y = GatedRows(x);
    torch::autograd::backward({y}, {g});
    const at::Tensor x2 = x.detach().clone().set_requires_grad(true);
    const at::Tensor y2 = ComposedGate(x2);
    torch::autograd::backward({y2}, {g});
    EXPECT_LT(Difference(y, y2), 1e-6);
    EXPECT_LT(Difference(x.grad(), x2.grad()), 1e-6);
  }
}

// Every composed operation rounds; a kernel rounds once.
TEST(RowFunctionsTest, Bfloat16StaysNearTheComposition) {
  const at::Tensor x = Wave({4, 40}, 0.3).to(at::kBFloat16);
  const at::Tensor weight = Wave({40}, 1.1);
  const at::Tensor norm = RmsNormRows(x, weight, 1e-6);
  EXPECT_EQ(norm.scalar_type(), at::kBFloat16);
  EXPECT_LT(Difference(norm, ComposedRmsNorm(x, weight, 1e-6)), 0.03);
  EXPECT_LT(Difference(GatedRows(x), ComposedGate(x)), 0.02);
}

TEST(RowFunctionsTest, RowsThatAreNotContiguousAreReadInTheirOrder) {
  const at::Tensor x = Wave({8, 6}, 0.1).t();
  const at::Tensor weight = Wave({8}, 0.5);
  EXPECT_LT(Difference(RmsNormRows(x, weight, 1e-6), ComposedRmsNorm(x, weight, 1e-6)), 2e-6);
}

TEST(RowFunctionsTest, OtherDtypesAreComposed) {
  const at::Tensor x = Wave({4, 8}, 0.3).to(at::kDouble);
  EXPECT_EQ(RmsNormRows(x, Wave({8}, 0).to(at::kDouble), 1e-6).scalar_type(), at::kDouble);
}

}  // namespace
}  // namespace pace
