// The references that fast kernels are compared with.
#include <gtest/gtest.h>

#include <cmath>

#include "train/adamw_reference.h"
#include "train/math/logprob_reference.h"

namespace pace {
namespace {

TEST(LogprobReferenceTest, TheGradientIsThatOfFiniteDifferences) {
  constexpr double kDifference = 1e-6;
  std::vector<double> logits = {0.3, -1.2, 4, 0.5, 2};
  for (const double temperature : {0.7, 1.0, 3.0}) {
    std::vector<double> gradient(logits.size(), 0.0);
    AddLogitGradient(logits, 3, temperature, 0.6, -1.5, gradient);
    for (size_t k = 0; k < logits.size(); ++k) {
      const auto value = [&](double step) {
        std::vector<double> moved = logits;
        moved[k] += step;
        const TokenScore score = ScoreToken(moved, 3, temperature);
        return 0.6 * score.logprob - 1.5 * score.entropy;
      };
      EXPECT_NEAR(gradient[k], (value(kDifference) - value(-kDifference)) / (2 * kDifference),
                  1e-8);
    }
  }
}

TEST(LogprobReferenceTest, HugeLogitsDoNotOverflow) {
  const std::vector<double> logits = {1e4, 0, -1e4};
  const TokenScore score = ScoreToken(logits, 1, 1);
  EXPECT_EQ(score.logprob, -1e4);
  EXPECT_EQ(score.entropy, 0);
}

TEST(LogprobReferenceTest, AUniformDistributionHasTheLargestEntropy) {
  const std::vector<double> logits(8, 2.5);
  const TokenScore score = ScoreToken(logits, 0, 0.5);
  EXPECT_NEAR(score.entropy, std::log(8), 1e-12);
  EXPECT_NEAR(score.logprob, -std::log(8), 1e-12);
}

TEST(AdamWReferenceTest, TheFirstUpdateMovesByTheLearningRate) {
  std::vector<std::vector<double>> parameters = {{1, -2}};
  AdamWReference<double> optimizer({.weight_decay = 0}, parameters);
  const std::vector<std::vector<double>> gradients = {{0.3, -7}};
  optimizer.Update(0.1, gradients, parameters);
  EXPECT_NEAR(parameters[0][0], 0.9, 1e-7);
  EXPECT_NEAR(parameters[0][1], -1.9, 1e-7);
}

TEST(AdamWReferenceTest, DecayShrinksWeightsWithoutAGradient) {
  std::vector<std::vector<double>> parameters = {{4}};
  AdamWReference<double> optimizer({.weight_decay = 0.5}, parameters);
  const std::vector<std::vector<double>> gradients = {{0}};
  optimizer.Update(0.1, gradients, parameters);
  EXPECT_NEAR(parameters[0][0], 4 * 0.95, 1e-12);
}

TEST(AdamWReferenceTest, WarmUpRisesLinearlyFromZero) {
  EXPECT_EQ(WarmupLearningRate(1, 0, 4), 0);
  EXPECT_EQ(WarmupLearningRate(1, 3, 4), 0.75);
  EXPECT_EQ(WarmupLearningRate(1, 4, 4), 1);
  EXPECT_EQ(WarmupLearningRate(1, 0, 0), 1);
}

TEST(AdamWReferenceTest, OnlyLargeGradientsAreClipped) {
  const std::vector<std::vector<float>> gradients = {{3}, {4}};
  EXPECT_NEAR(GradientNorm<float>(gradients), 5, 1e-12);
  EXPECT_NEAR(ClipFactor(5, 1), 0.2, 1e-6);
  EXPECT_EQ(ClipFactor(0.5, 1), 1);
}

TEST(AdamWReferenceTest, OptionsThatBreakARuleAreNamed) {
  EXPECT_EQ(AdamWReferenceOptions{.weight_decay = -1}.Validate().message(),
            "adamw.weight_decay = -1: must be >= 0");
  EXPECT_FALSE(AdamWReferenceOptions{.beta1 = 1}.Validate().ok());
}

}  // namespace
}  // namespace pace
