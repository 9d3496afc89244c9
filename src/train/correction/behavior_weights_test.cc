#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/correction/corrections.h"
#include "train/test_batch.h"

namespace pace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Ratios 1/2, 8, 2 in one sequence; the last token is masked.
BehaviorWeights Weigh(const BehaviorOptions& options, double first = std::log(0.5)) {
  const std::vector<int64_t> offsets = {0, 4};
  const std::vector<uint8_t> mask = {1, 1, 1, 0};
  const std::vector<double> rollout = {-3, -3, -3, -3};
  const std::vector<double> proximal = {-3 + first, -3 + std::log(8), -3 + std::log(2), 0};
  return WeighBehavior({.offsets = offsets, .mask = mask}, proximal, rollout, options);
}

void ExpectBehaviorWeights(const BehaviorWeights& result, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(result.weights[i], expected[i], 1e-12);
}

TEST(BehaviorWeightsTest, MaskingLeavesOutWhatIsOutOfBounds) {
  const BehaviorWeights result = Weigh({});
  ExpectBehaviorWeights(result, {0.5, 0, 2, 0});
  EXPECT_NEAR(result.filtered_fraction, 1.0 / 3, 1e-15);
  const std::vector<uint8_t> kept = {1, 0, 1, 0};
  EXPECT_EQ(result.kept, kept);
}

TEST(BehaviorWeightsTest, ClampingKeepsAllAndBoundsTheirWeight) {
  const BehaviorWeights result =
      Weigh({.action = BehaviorOptions::Action::kClamp, .upper = 4, .lower = 1});
  ExpectBehaviorWeights(result, {1, 4, 2, 0});
  EXPECT_NEAR(result.filtered_fraction, 2.0 / 3, 1e-15);
}

TEST(BehaviorWeightsTest, ASequenceWeighsItsGeometricMean) {
  const BehaviorWeights result = Weigh({.level = RatioLevel::kSequence});
  ExpectBehaviorWeights(result, {2, 2, 2, 0});
}

TEST(BehaviorWeightsTest, ASequenceIsJudgedByItsSumMeanOrMaximum) {
  using Aggregation = BehaviorOptions::Aggregation;
  BehaviorOptions options = {.level = RatioLevel::kSequence, .upper = 3};
  EXPECT_EQ(Weigh(options).filtered_fraction, 0);
  options.aggregation = Aggregation::kMax;
  EXPECT_EQ(Weigh(options).filtered_fraction, 1);
  options.aggregation = Aggregation::kSum;
  options.upper = 7.9;
  EXPECT_EQ(Weigh(options).filtered_fraction, 1);
  options.upper = 8.1;
  EXPECT_EQ(Weigh(options).filtered_fraction, 0);
}

TEST(BehaviorWeightsTest, ATokenWithoutAFiniteRatioIsLeftOut) {
  const BehaviorWeights result = Weigh({.upper = 100}, -kInfinity);
  ExpectBehaviorWeights(result, {0, 8, 2, 0});
  EXPECT_EQ(result.kept[0], 0);
}

TEST(BehaviorWeightsTest, MaskedTokensNeverMatterEvenWhenNaN) {
  for (const RatioLevel level : {RatioLevel::kToken, RatioLevel::kSequence}) {
    BatchData data = RandomBatch(6);
    const auto weigh = [&] {
      return WeighBehavior(data.layout(), data.proximal_logprobs, data.rollout_logprobs,
                           {.level = level, .upper = 1.05});
    };
    const BehaviorWeights plain = weigh();
    FillMasked(data, std::numeric_limits<double>::quiet_NaN());
    const BehaviorWeights poisoned = weigh();
    EXPECT_EQ(plain.weights, poisoned.weights);
    EXPECT_EQ(plain.kept, poisoned.kept);
    EXPECT_GT(plain.filtered_fraction, 0);
    EXPECT_EQ(plain.filtered_fraction, poisoned.filtered_fraction);
  }
}

TEST(BehaviorWeightsTest, BoundsThatBreakARuleAreNamed) {
  const BehaviorOptions crossed = {.upper = 1, .lower = 2};
  EXPECT_EQ(crossed.Validate().message(), "behavior_lower = 2: must be <= behavior_upper = 1");
}

}  // namespace
}  // namespace pace
