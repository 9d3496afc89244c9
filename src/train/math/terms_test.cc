// KL penalties and the value loss: gradients by differences.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/math/kl_penalty.h"
#include "train/math/value_loss.h"
#include "train/test_batch.h"

namespace pace {
namespace {

constexpr double kStep = 1e-6;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

ReductionWeights TokenMean(const BatchData& data) {
  return *WeighTokens(data.layout(), CountTotals(data.layout()), {});
}

TEST(KlPenaltyTest, EveryEstimatorHasTheSlopeOfItsValue) {
  for (const char* name : {"k1", "k2", "k3", "abs"}) {
    const KlPenaltyOptions options = *KlPenaltyFromName(name);
    for (const double x : {-30.0, -3.0, -0.2, 0.3, 2.0, 15.0}) {
      const double slope =
          (KlPenalty(options, x + kStep, 0).value - KlPenalty(options, x - kStep, 0).value) /
          (2 * kStep);
      EXPECT_NEAR(KlPenalty(options, x, 0).slope, slope, 1e-6 * std::max(1.0, std::abs(slope)))
          << name << " " << x;
    }
  }
}

TEST(KlPenaltyTest, K3IsNeverNegativeAndZeroAtEquality) {
  const KlPenaltyOptions k3 = *KlPenaltyFromName("k3");
  EXPECT_EQ(KlPenalty(k3, -1, -1).value, 0);
  for (const double x : {-5.0, -1e-9, 1e-9, 5.0}) EXPECT_GE(KlPenalty(k3, x, 0).value, 0);
}

TEST(KlPenaltyTest, StraightThroughHasTheValueOfOneAndTheSlopeOfK2) {
  const KlTerm term = KlPenalty(*KlPenaltyFromName("k3+"), 2, 0);
  EXPECT_NEAR(term.value, std::exp(-2) - 1 + 2, 1e-15);
  EXPECT_EQ(term.slope, 2);
}

TEST(KlPenaltyTest, ABoundHasNoSlope) {
  const KlTerm term = KlPenalty(*KlPenaltyFromName("k3"), -3, 0);
  EXPECT_EQ(term.value, 10);
  EXPECT_EQ(term.slope, 0);
  KlPenaltyOptions unbounded = *KlPenaltyFromName("k3");
  unbounded.max_value.reset();
  EXPECT_NEAR(KlPenalty(unbounded, -3, 0).value, std::exp(3) - 1 - 3, 1e-12);
}

TEST(KlPenaltyTest, AnUnknownNameIsNothing) {
  EXPECT_FALSE(KlPenaltyFromName("full").has_value());
  EXPECT_FALSE(KlPenaltyFromName("+").has_value());
}

TEST(KlPenaltyTest, TheKlTermSlopesInTheLogProbs) {
  BatchData data = RandomBatch(1);
  FillMasked(data, kNaN);
  const KlPenaltyOptions options = *KlPenaltyFromName("k3");
  const auto term = [&] {
    return *KlRegularizer(data.tokens(), TokenMean(data), data.rollout_logprobs, options, 0.5);
  };
  const KlRegularizerTerm at = term();
  ASSERT_TRUE(std::isfinite(at.loss));
  EXPECT_NEAR(at.loss, 0.5 * at.metric.value, 1e-12);
  for (size_t token = 0; token < data.mask.size(); ++token) {
    const double original = data.logprobs[token];
    data.logprobs[token] = original + kStep;
    const double above = term().loss;
    data.logprobs[token] = original - kStep;
    EXPECT_NEAR(at.gradient[token], (above - term().loss) / (2 * kStep), 1e-7);
    data.logprobs[token] = original;
  }
}

TEST(ValueLossTest, TheGradientIsThatOfFiniteDifferences) {
  for (const std::optional<double>& clip : {std::optional<double>(), std::optional<double>(0.2)}) {
    BatchData data = RandomBatch(8);
    FillMasked(data, kNaN);
    const auto loss = [&] {
      return *ValueLoss(data.layout(), TokenMean(data), data.values, data.advantages,
                        data.token_rewards, clip);
    };
    const ValueLossResult at = loss();
    ASSERT_TRUE(std::isfinite(at.loss));
    for (size_t token = 0; token < data.mask.size(); ++token) {
      const double original = data.values[token];
      data.values[token] = original + kStep;
      const double above = loss().loss;
      data.values[token] = original - kStep;
      EXPECT_NEAR(at.gradient[token], (above - loss().loss) / (2 * kStep), 1e-7);
      data.values[token] = original;
    }
  }
}

TEST(ValueLossTest, AClipNeedsTheOldValues) {
  const BatchData data = RandomBatch(8);
  EXPECT_FALSE(
      ValueLoss(data.layout(), TokenMean(data), data.values, {}, data.token_rewards, 0.2).ok());
  EXPECT_TRUE(
      ValueLoss(data.layout(), TokenMean(data), data.values, {}, data.token_rewards, {}).ok());
}

}  // namespace
}  // namespace pace
