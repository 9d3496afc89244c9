#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "train/math/logprob_reference.h"
#include "train/policy_scores.h"

namespace pace {
namespace {

struct LogprobCase {
  at::Tensor hidden_NH;
  at::Tensor head_VH;
  at::Tensor targets_N;
};

LogprobCase MakeCase(int64_t rows, int64_t hidden, int64_t vocab, at::ScalarType dtype) {
  const auto wave = [&](int64_t a, int64_t b, double phase) {
    return (at::arange(a * b, at::kDouble) * 1.7 + phase).sin().view({a, b}).to(dtype);
  };
  return {.hidden_NH = wave(rows, hidden, 0.3).set_requires_grad(true),
          .head_VH = wave(vocab, hidden, 1.1).set_requires_grad(true),
          .targets_N = (at::arange(rows, at::kLong) * 7).remainder(vocab)};
}

TEST(TokenLogProbsTest, AgreesWithTheReferenceRowByRow) {
  const LogprobCase c = MakeCase(37, 5, 11, at::kDouble);
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
  const LogprobCase c = MakeCase(50, 4, 70'000, at::kDouble);
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

// Slopes that follow from the log-probs of a chunk: the same bits with one computation of the
// logits as with two.
TEST(TokenLogProbsTest, GradientsComputedWithTheLogProbsAreThoseOfTheBackwardPass) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const bool with_entropy : {false, true}) {
      const LogprobCase twice = MakeCase(50, 8, 70'000, dtype);
      const LogprobCase once = MakeCase(50, 8, 70'000, dtype);
      const at::Tensor bonus =
          at::arange(50, dtype == at::kDouble ? at::kDouble : at::kFloat).cos();
      const auto slope_of = [](const at::Tensor& logprobs) { return logprobs.exp() + 0.5; };

      const TokenLogProbsResult first =
          TokenLogProbs(twice.hidden_NH, twice.head_VH, twice.targets_N, 1.3);
      std::vector<at::Tensor> outputs = {first.logprobs_N};
      std::vector<at::Tensor> slopes = {slope_of(first.logprobs_N.detach())};
      if (with_entropy) {
        outputs.push_back(first.entropy_N);
        slopes.push_back(bonus);
      }
      torch::autograd::backward(outputs, slopes);

      int64_t num_rows = 0;
      const auto slopes_of = [&](int64_t begin, const at::Tensor& logprobs) -> RowSlopes {
        EXPECT_EQ(begin, num_rows);
        num_rows += logprobs.size(0);
        return {
            .of_logprob_N = slope_of(logprobs),
            .of_entropy_N = with_entropy ? bonus.narrow(0, begin, logprobs.size(0)) : at::Tensor()};
      };
      const TokenLogProbsResult second =
          TokenLogProbs(once.hidden_NH, once.head_VH, once.targets_N, 1.3, slopes_of);
      EXPECT_EQ(num_rows, 50);
      torch::autograd::backward({second.logprobs_N}, {at::ones_like(second.logprobs_N)});

      EXPECT_TRUE(at::equal(first.logprobs_N, second.logprobs_N)) << dtype;
      EXPECT_TRUE(at::equal(first.entropy_N, second.entropy_N)) << dtype;
      EXPECT_TRUE(at::equal(twice.hidden_NH.grad(), once.hidden_NH.grad())) << dtype;
      EXPECT_TRUE(at::equal(twice.head_VH.grad(), once.head_VH.grad())) << dtype;
    }
  }
}

TEST(TokenLogProbsTest, AnEntropyThatNobodyUsesCostsNoGradient) {
  const LogprobCase c = MakeCase(9, 3, 8, at::kDouble);
  const TokenLogProbsResult result = TokenLogProbs(c.hidden_NH, c.head_VH, c.targets_N, 1.0);
  torch::autograd::backward({result.logprobs_N.sum()});
  EXPECT_TRUE(c.hidden_NH.grad().defined());
}

TEST(TokenLogProbsTest, ABfloat16NetworkIsSummedInFloat32) {
  const LogprobCase c = MakeCase(12, 16, 40, at::kBFloat16);
  const TokenLogProbsResult result = TokenLogProbs(c.hidden_NH, c.head_VH, c.targets_N, 1.0);
  EXPECT_EQ(result.logprobs_N.scalar_type(), at::kFloat);
  const at::Tensor expected = at::log_softmax(
      at::mm(c.hidden_NH.detach().to(at::kFloat), c.head_VH.detach().to(at::kFloat).t()), -1);
  const at::Tensor chosen = expected.gather(1, c.targets_N.unsqueeze(1)).squeeze(1);
  EXPECT_LT((result.logprobs_N - chosen).abs().max().item<double>(), 1e-5);
}

}  // namespace
}  // namespace pace
