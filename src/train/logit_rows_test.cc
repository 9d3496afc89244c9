#include "train/logit_rows.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "train/policy_scores.h"

namespace pace {
namespace {

at::Tensor Wave(at::IntArrayRef sizes, double phase) {
  return (at::arange(c10::multiply_integers(sizes), at::kDouble) * 1.7 + phase).sin().view(sizes);
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

struct Outputs {
  at::Tensor logprobs, entropy, d_hidden, d_head;
};

// Gradients of both outputs, or of the first alone.
Outputs Compute(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                double temperature, bool of_entropy) {
  const at::Tensor x = hidden.detach().clone().set_requires_grad(true);
  const at::Tensor w = head.detach().clone().set_requires_grad(true);
  const TokenLogProbsResult result = TokenLogProbs(x, w, targets, temperature);
  std::vector<at::Tensor> outputs = {result.logprobs_N};
  std::vector<at::Tensor> gradients = {
      Wave({hidden.size(0)}, 0.4).to(result.logprobs_N.scalar_type())};
  if (of_entropy) {
    outputs.push_back(result.entropy_N);
    gradients.push_back(gradients[0].flip(0));
  }
  torch::autograd::backward(outputs, gradients);
  return {result.logprobs_N.detach(), result.entropy_N.detach(), x.grad(), w.grad()};
}

struct Sizes {
  int64_t num_rows = 0;
  int64_t hidden = 0;
  int64_t vocabulary = 0;
};
// Around the sizes of tiles and panels, and in several chunks.
const std::vector<Sizes> kSizes = {{1, 3, 5}, {16, 32, 64}, {37, 40, 33}, {150, 8, 70'000}};

TEST(LogitRowsTest, KernelsAgreeWithTheCompositionInDouble) {
  for (const auto& [num_rows, hidden, vocabulary] : kSizes) {
    const at::Tensor x = Wave({num_rows, hidden}, 0.3);
    const at::Tensor w = Wave({vocabulary, hidden}, 1.1);
    const at::Tensor targets = (at::arange(num_rows, at::kLong) * 7).remainder(vocabulary);
    for (const bool of_entropy : {false, true}) {
      const Outputs exact = Compute(x, w, targets, 1.3, of_entropy);
      const Outputs ours = Compute(x.to(at::kFloat), w.to(at::kFloat), targets, 1.3, of_entropy);
      EXPECT_LT(Difference(ours.logprobs, exact.logprobs), 1e-5);
      EXPECT_LT(Difference(ours.entropy, exact.entropy), 2e-5);
      EXPECT_LT(Difference(ours.d_hidden, exact.d_hidden), 1e-5);
      EXPECT_LT(Difference(ours.d_head, exact.d_head), 2e-5);
    }
  }
}

// Against the composition on the same rounded numbers.
TEST(LogitRowsTest, Bfloat16StaysNearTheComposition) {
  for (const auto& [num_rows, hidden, vocabulary] : kSizes) {
    const at::Tensor x = Wave({num_rows, hidden}, 0.3).to(at::kBFloat16);
    const at::Tensor w = Wave({vocabulary, hidden}, 1.1).to(at::kBFloat16).to(at::kFloat);
    const at::Tensor targets = (at::arange(num_rows, at::kLong) * 7).remainder(vocabulary);
    const Outputs exact = Compute(x.to(at::kDouble), w.to(at::kDouble), targets, 0.8, true);
    const Outputs ours = Compute(x, w, targets, 0.8, true);
    EXPECT_EQ(ours.logprobs.scalar_type(), at::kFloat);
    EXPECT_EQ(ours.d_hidden.scalar_type(), at::kBFloat16);
    EXPECT_EQ(ours.d_head.scalar_type(), at::kFloat);
    EXPECT_LT(Difference(ours.logprobs, exact.logprobs), 1e-4);
    EXPECT_LT(Difference(ours.entropy, exact.entropy), 1e-4);
    EXPECT_LT(Difference(ours.d_hidden, exact.d_hidden), 0.02);
    EXPECT_LT(Difference(ours.d_head, exact.d_head), 0.02);
  }
}

// Padding behind the vocabulary takes no part.
TEST(LogitRowsTest, LogitsAreTheProductOfTheirRows) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = Wave({33, 40}, 0.3).to(dtype);
    const at::Tensor w = Wave({45, 40}, 1.1).to(dtype);
    const LogitProduct product(x, w);
    const at::Tensor logits = product.Logits(16, 17);
    EXPECT_EQ(logits.size(1), 45);
    const at::Tensor exact = at::mm(x.narrow(0, 16, 17).to(at::kDouble), w.to(at::kDouble).t());
    EXPECT_LT(Difference(logits, exact), 1e-5);
  }
}

}  // namespace
}  // namespace pace
