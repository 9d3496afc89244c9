#include "train/math/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "train/math/metric.h"
#include "train/test_batch.h"

namespace pace {
namespace {

// Two sequences of 1 and 3 policy tokens, one of none.
const std::vector<int64_t> kOffsets = {0, 2, 5, 6};
const std::vector<uint8_t> kMask = {1, 0, 1, 1, 1, 0};
const SequenceLayout kLayout = {.offsets = kOffsets, .mask = kMask};

std::vector<double> Weights(ReductionMode mode, double scale = 1) {
  const Result<ReductionWeights> weights =
      WeighTokens(kLayout, CountTotals(kLayout), {.mode = mode, .horizon = 10, .scale = scale});
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  return weights->token;
}

TEST(ReductionTest, EveryModeWeighsAsItsNameSays) {
  const auto expect = [](ReductionMode mode, const std::vector<double>& expected) {
    const std::vector<double> weights = Weights(mode);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(weights[i], expected[i], 1e-15) << NameOf(mode) << " " << i;
    }
  };
  expect(ReductionMode::kTokenMean, {0.25, 0, 0.25, 0.25, 0.25, 0});
  expect(ReductionMode::kTokenSum, {1, 0, 1, 1, 1, 0});
  expect(ReductionMode::kSequenceMeanTokenSum, {0.5, 0, 0.5, 0.5, 0.5, 0});
  expect(ReductionMode::kSequenceMeanTokenMean, {0.5, 0, 0.5 / 3, 0.5 / 3, 0.5 / 3, 0});
  expect(ReductionMode::kSequenceMeanTokenSumNorm, {0.05, 0, 0.05, 0.05, 0.05, 0});
}

TEST(ReductionTest, ScaleMultipliesEveryWeight) {
  EXPECT_EQ(Weights(ReductionMode::kTokenMean, 4)[0], 1);
}

TEST(ReductionTest, TotalsOfPartsAddUpToThoseOfTheWhole) {
  const BatchData data = RandomBatch(1);
  const MinibatchTotals whole = CountTotals(data.layout());
  MinibatchTotals sum;
  for (size_t sequence = 0; sequence < data.groups.size(); ++sequence) {
    const BatchData part = Select(data, std::vector<size_t>{sequence});
    const MinibatchTotals totals = CountTotals(part.layout());
    sum.num_tokens += totals.num_tokens;
    sum.num_sequences += totals.num_sequences;
  }
  EXPECT_EQ(sum.num_tokens, whole.num_tokens);
  EXPECT_EQ(sum.num_sequences, whole.num_sequences);
}

TEST(ReductionTest, MeansOfOnesAreOne) {
  for (const ReductionMode mode :
       {ReductionMode::kTokenMean, ReductionMode::kSequenceMeanTokenMean}) {
    const BatchData data = RandomBatch(3);
    const Result<ReductionWeights> weights =
        WeighTokens(data.layout(), CountTotals(data.layout()), {.mode = mode});
    EXPECT_NEAR(std::accumulate(weights->token.begin(), weights->token.end(), 0.0), 1, 1e-12);
  }
}

TEST(ReductionTest, NamesReadBack) {
  for (const char* name : {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean",
                           "seq-mean-token-sum-norm"}) {
    ASSERT_TRUE(ReductionModeFromName(name).has_value()) << name;
    EXPECT_EQ(NameOf(*ReductionModeFromName(name)), name);
  }
  EXPECT_FALSE(ReductionModeFromName("mean").has_value());
}

TEST(ReductionTest, WithoutAHorizonTheNormalisedSumIsAnError) {
  const auto weights = WeighTokens(kLayout, CountTotals(kLayout),
                                   {.mode = ReductionMode::kSequenceMeanTokenSumNorm});
  ASSERT_FALSE(weights.ok());
  EXPECT_NE(weights.status().message().find("horizon"), std::string::npos);
}

TEST(ReductionTest, TotalsSmallerThanThePartAreAnError) {
  EXPECT_FALSE(WeighTokens(kLayout, {.num_tokens = 3, .num_sequences = 2}, {}).ok());
}

TEST(ReductionTest, OnlyPeersRulesForPaddingGiveNaN) {
  const std::vector<int64_t> offsets = {0, 1};
  const std::vector<uint8_t> mask = {0};
  const SequenceLayout empty = {.offsets = offsets, .mask = mask};
  const ReductionOptions ours = {.mode = ReductionMode::kSequenceMeanTokenMean};
  EXPECT_EQ(WeighTokens(empty, {}, ours)->offset, 0);
  EXPECT_EQ(WeighTokens(empty, {}, ours)->token[0], 0);
  ReductionOptions verl = ours;
  verl.padding = PaddingRule::kVerl;
  EXPECT_TRUE(std::isnan(WeighTokens(empty, {}, verl)->offset));
  ReductionOptions early = ours;
  early.padding = PaddingRule::kEarlyVerl;
  EXPECT_TRUE(std::isnan(WeighTokens(empty, {}, early)->token[0]));
}

TEST(LayoutTest, WhatDoesNotFitTogetherIsNamed) {
  const std::vector<int64_t> short_offsets = {0, 2};
  EXPECT_EQ((SequenceLayout{.offsets = short_offsets, .mask = kMask}).Validate().message(),
            "offsets end at 2: must end at the 6 tokens of the mask");
  const std::vector<int64_t> falling = {0, 4, 2, 6};
  EXPECT_FALSE((SequenceLayout{.offsets = falling, .mask = kMask}).Validate().ok());
  const std::vector<int64_t> late = {1, 6};
  EXPECT_FALSE((SequenceLayout{.offsets = late, .mask = kMask}).Validate().ok());
}

TEST(LayoutTest, GroupsKeepTheOrderOfTheirFirstMembers) {
  const std::vector<int64_t> groups = {9, 2, 9};
  const SequenceLayout layout = {.offsets = kOffsets, .groups = groups, .mask = kMask};
  const std::vector<std::vector<size_t>> expected = {{0, 2}, {1}};
  EXPECT_EQ(GroupMembers(layout), expected);
}

TEST(MetricTest, PartsMergeToTheMeanOfTheWhole) {
  MetricList whole = {{"a", 1, 3}};
  MergeMetrics({{"a", 5, 1}, {"b", 2, 1}}, whole);
  ASSERT_EQ(whole.size(), 2);
  EXPECT_EQ(whole[0].value, 2);
  EXPECT_EQ(whole[0].weight, 4);
  EXPECT_EQ(whole[1].value, 2);
}

}  // namespace
}  // namespace pace
