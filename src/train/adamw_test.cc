#include "train/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/adamw_reference.h"

namespace pace {
namespace {

at::Tensor WaveOf(int64_t size, double phase) {
  return (at::arange(size, at::kDouble) * 1.3 + phase).sin().to(at::kFloat);
}

std::vector<float> ToVector(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

TEST(AdamWTest, FollowsTheReferenceOverManyUpdates) {
  const NamedTensors parameters = {{"a", WaveOf(7, 0.1).set_requires_grad(true)},
                                   {"b", WaveOf(3, 2.0).set_requires_grad(true)}};
  AdamW adamw(parameters, {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.2});
  std::vector<std::vector<float>> expected = {ToVector(parameters.at("a")),
                                              ToVector(parameters.at("b"))};
  AdamWReference<float> reference(
      {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.2}, expected);
  for (int update = 0; update < 30; ++update) {
    std::vector<std::vector<float>> gradients;
    for (const auto& [name, parameter] : parameters) {
      at::Tensor(parameter).mutable_grad() = WaveOf(parameter.numel(), update + 0.5);
      gradients.push_back(ToVector(parameter.grad()));
    }
    adamw.Step(0.01);
    reference.Update(0.01, gradients, expected);
  }
  for (size_t tensor = 0; tensor < 2; ++tensor) {
    const std::vector<float> got = ToVector(parameters.at(tensor == 0 ? "a" : "b"));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[tensor][i], 2e-6);
  }
}

TEST(AdamWTest, ARestoredOptimizerGoesOnToTheBit) {
  const auto fresh = [] { return NamedTensors{{"a", WaveOf(9, 0.4).set_requires_grad(true)}}; };
  const NamedTensors straight = fresh();
  AdamW one(straight, {});
  const auto update = [](const NamedTensors& parameters, AdamW& adamw, int number) {
    at::Tensor(parameters.at("a")).mutable_grad() = WaveOf(9, number);
    adamw.Step(0.05);
  };
  for (int i = 0; i < 3; ++i) update(straight, one, i);
  const NamedTensors resumed = {{"a", straight.at("a").detach().clone().set_requires_grad(true)}};
  AdamW two(resumed, {});
  NamedTensors state;
  for (const auto& [name, tensor] : one.State()) state.emplace(name, tensor.clone());
  ASSERT_TRUE(two.Restore(state, one.num_updates()).ok());
  for (int i = 3; i < 6; ++i) {
    update(straight, one, i);
    update(resumed, two, i);
  }
  EXPECT_TRUE(at::equal(straight.at("a"), resumed.at("a")));
  EXPECT_FALSE(two.Restore({}, 1).ok());
  state["a.m"] = at::zeros({2});
  EXPECT_FALSE(two.Restore(state, 1).ok());
}

TEST(AdamWTest, GradientsAreScaledDownToTheirLargestNormAndNeverUp) {
  const NamedTensors parameters = {{"a", at::zeros({2}).set_requires_grad(true)},
                                   {"b", at::zeros({1}).set_requires_grad(true)}};
  at::Tensor(parameters.at("a")).mutable_grad() = at::tensor({3.0F, 0.0F});
  EXPECT_DOUBLE_EQ(GradientNorm(parameters), 3);
  EXPECT_EQ(GradientFactor(3, 10), 1);
  EXPECT_EQ(GradientFactor(3, 0), 1);
  at::Tensor(parameters.at("b")).mutable_grad() = at::tensor({4.0F});
  EXPECT_DOUBLE_EQ(GradientNorm(parameters), 5);
  EXPECT_NEAR(GradientFactor(5, 1), 0.2, 1e-6);
  at::Tensor(parameters.at("b")).mutable_grad() = at::tensor({NAN});
  EXPECT_FALSE(std::isfinite(GradientNorm(parameters)));
  EXPECT_EQ(GradientFactor(NAN, 1), 1);
}

// A step by a factor is the step by gradients that were scaled before.
TEST(AdamWTest, TheFactorScalesGradients) {
  const NamedTensors scaled = {{"a", at::ones({3}).set_requires_grad(true)}};
  const NamedTensors plain = {{"a", at::ones({3}).set_requires_grad(true)}};
  AdamW one(scaled, {});
  AdamW two(plain, {});
  for (int i = 1; i < 4; ++i) {
    const at::Tensor gradient = at::tensor({0.5F, -2.0F, 7.0F}) / i;
    at::Tensor(scaled.at("a")).mutable_grad() = gradient.clone();
    at::Tensor(plain.at("a")).mutable_grad() = gradient * 0.25;
    one.Step(0.01, 0.25);
    two.Step(0.01);
  }
  EXPECT_TRUE(at::equal(scaled.at("a"), plain.at("a")));
}

}  // namespace
}  // namespace pace
