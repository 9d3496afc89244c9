#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "train/logprob_reference.h"
#include "train/policy_scores.h"

namespace pace {
namespace {

struct Case {
  at::Tensor hidden_NH;
  at::Tensor head_VH;
  at::Tensor targets_N;
};

Case MakeCase(int64_t rows, int64_t hidden, int64_t vocab, at::ScalarType dtype) {
  const auto wave = [&](int64_t a, int64_t b, double phase) {
    return (at::arange(a * b, at::kDouble) * 1.7 + phase).sin().view({a, b}).to(dtype);
  };
  return {.hidden_NH = wave(rows, hidden, 0.3).set_requires_grad(true),
          .head_VH = wave(vocab, hidden, 1.1).set_requires_grad(true),
          .targets_N = (at::arange(rows, at::kLong) * 7).remainder(vocab)};
}

TEST(TokenLogProbsTest, AgreesWithTheReferenceRowByRow) {
  const Case c = MakeCase(37, 5, 11, at::kDouble);
  const TokenLogProbsResult result = TokenLogProbs(c.hidden_NH, c.head_VH, c.targets_N, 0.7);
  const at::Tensor logits = at::mm(c.hidden_NH.detach(), c.head_VH.detach().t()).contiguous();
  for (int64_t row = 0; row < 37; ++row) {
    const std::span<const double> own(logits.data_ptr<double>() + row * 11, 11);
    const TokenScore expected = ScoreToken(own, static_cast<size_t>((row * 7) % 11), 0.7);
    EXPECT_NEAR(result.logprobs_N[row].item<double>(), expected.logprob, 1e-12);
    EXPECT_NEAR(result.entropy_N[row].item<double>(), expected.entropy, 1e-12);
  }
}

// The vocabulary is so large that rows come in chunks of 16.
TEST(TokenLogProbsTest, GradientsOfBothOutputsAreThoseOfPlainSoftmax) {
  const Case c = MakeCase(50, 4, 70'000, at::kDouble);
  const at::Tensor weights = at::arange(50, at::kDouble).cos();
  const TokenLogProbsResult result = TokenLogProbs(c.hidden_NH, c.head_VH, c.targets_N, 1.3);
  torch::autograd::backward({result.logprobs_N, result.entropy_N}, {weights, weights.flip(0)});

  const at::Tensor hidden = c.hidden_NH.detach().clone().set_requires_grad(true);
  const at::Tensor head = c.head_VH.detach().clone().set_requires_grad(true);
  const at::Tensor logprobs = at::log_softmax(at::mm(hidden, head.t()) / 1.3, -1);
  const at::Tensor chosen = logprobs.gather(1, c.targets_N.unsqueeze(1)).squeeze(1);
  const at::Tensor entropy = -(logprobs.exp() * logprobs).sum(-1);
  torch::autograd::backward({chosen, entropy}, {weights, weights.flip(0)});
  const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  };
  EXPECT_LT(difference(c.hidden_NH.grad(), hidden.grad()), 1e-10);
  EXPECT_LT(difference(c.head_VH.grad(), head.grad()), 1e-10);
}

TEST(TokenLogProbsTest, AnEntropyThatNobodyUsesCostsNoGradient) {
  const Case c = MakeCase(9, 3, 8, at::kDouble);
  const TokenLogProbsResult result = TokenLogProbs(c.hidden_NH, c.head_VH, c.targets_N, 1.0);
  torch::autograd::backward({result.logprobs_N.sum()});
  EXPECT_TRUE(c.hidden_NH.grad().defined());
}

TEST(TokenLogProbsTest, ABfloat16NetworkIsSummedInFloat32) {
  const Case c = MakeCase(12, 16, 40, at::kBFloat16);
  const TokenLogProbsResult result = TokenLogProbs(c.hidden_NH, c.head_VH, c.targets_N, 1.0);
  EXPECT_EQ(result.logprobs_N.scalar_type(), at::kFloat);
  const at::Tensor expected = at::log_softmax(
      at::mm(c.hidden_NH.detach().to(at::kFloat), c.head_VH.detach().to(at::kFloat).t()), -1);
  const at::Tensor chosen = expected.gather(1, c.targets_N.unsqueeze(1)).squeeze(1);
  EXPECT_LT((result.logprobs_N - chosen).abs().max().item<double>(), 1e-5);
}

}  // namespace
}  // namespace pace
