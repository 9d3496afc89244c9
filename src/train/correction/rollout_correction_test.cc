#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/correction/corrections.h"
#include "train/test_batch.h"

namespace pace {
namespace {

// Ratios 0.4, 1, 4 in one sequence and 1 in another; the fourth token is masked.
struct Example {
  std::vector<int64_t> offsets = {0, 4, 5};
  std::vector<uint8_t> mask = {1, 1, 1, 0, 1};
  std::vector<double> rollout = {-1, -1, -1, -1, -1};
  std::vector<double> train = {-1 + std::log(0.4), -1, -1 + std::log(4), 7, -1};

  Result<Correction> Correct(const CorrectionOptions& options) const {
    return CorrectRollout({.offsets = offsets, .mask = mask}, train, rollout, options);
  }
};

double Value(const Correction& correction, const std::string& name) {
  const Metric* metric = FindMetric(correction.metrics, name);
  EXPECT_NE(metric, nullptr) << name;
  return metric == nullptr ? 0 : metric->value;
}

void ExpectWeights(const Correction& correction, const std::vector<double>& expected) {
  ASSERT_EQ(correction.weights.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(correction.weights[i], expected[i], 1e-12) << i;
  }
}

TEST(RolloutCorrectionTest, TisCutsLargeWeights) {
  const Result<Correction> result = Example().Correct({.importance = ImportanceOptions{}});
  ExpectWeights(*result, {0.4, 1, 2, 0, 1});
  // (0.4 + 1 + 2 + 1)^2 / (4 (0.16 + 1 + 4 + 1))
  EXPECT_NEAR(Value(*result, "train/ess"), 4.4 * 4.4 / (4 * 6.16), 1e-12);
  EXPECT_EQ(Value(*result, "train/is_fraction_high"), 0.25);
  EXPECT_EQ(Value(*result, "train/is_fraction_low"), 0.25);
  EXPECT_EQ(result->mask, Example().mask);
}

TEST(RolloutCorrectionTest, IcePopZeroesBothSides) {
  const Result<Correction> result =
      Example().Correct({.importance = ImportanceOptions{.upper = 2, .lower = 0.5}});
  ExpectWeights(*result, {0, 1, 0, 0, 1});
  EXPECT_EQ(Value(*result, "train/is_out_of_band"), 0.5);
}

TEST(RolloutCorrectionTest, ASequenceWeightIsTheProductOfItsRatios) {
  const Result<Correction> result = Example().Correct(
      {.importance = ImportanceOptions{.level = RatioLevel::kSequence, .upper = 8}});
  ExpectWeights(*result, {1.6, 1.6, 1.6, 0, 1});
}

TEST(RolloutCorrectionTest, NormalisedWeightsHaveTheMeanOne) {
  const Result<Correction> result =
      Example().Correct({.importance = ImportanceOptions{.normalize = true}});
  ExpectWeights(*result, {0.4 / 1.1, 1 / 1.1, 2 / 1.1, 0, 1 / 1.1});
}

TEST(RolloutCorrectionTest, AllWeightsOutOfBandGiveZeroAndInCompatAnError) {
  CorrectionOptions options = {.importance = ImportanceOptions{.upper = 9, .lower = 8}};
  const Result<Correction> result = Example().Correct(options);
  ExpectWeights(*result, {0, 0, 0, 0, 0});
  EXPECT_EQ(Value(*result, "train/ess"), 0);
  options.compat = true;
  EXPECT_FALSE(Example().Correct(options).ok());
}

TEST(RolloutCorrectionTest, TokenRejectionTakesTokensSequenceRejectionSequences) {
  const RejectionCriterion token = {.upper = 3};
  const std::vector<uint8_t> without_third = {1, 1, 0, 0, 1};
  EXPECT_EQ(Example().Correct({.rejection = {token}})->mask, without_third);
  const RejectionCriterion whole = {.level = RejectionCriterion::Level::kSequenceMax,
                                    .measure = RejectionCriterion::Measure::kK2,
                                    .upper = 0.5};
  const std::vector<uint8_t> second = {0, 0, 0, 0, 1};
  const Result<Correction> result = Example().Correct({.rejection = {whole}});
  EXPECT_EQ(result->mask, second);
  EXPECT_EQ(Value(*result, "train/rejected"), 0.75);
  EXPECT_EQ(Value(*result, "train/rejected_seq_max_k2_seq"), 0.5);
}

TEST(RolloutCorrectionTest, TheBoundsOfK1CanBeReadBothWays) {
  const RejectionCriterion criterion = {.upper = 3, .lower = 0.2};
  // rollout / train is 2.5, 1, 0.25; train / rollout 0.4, 1, 4.
  const std::vector<uint8_t> all = {1, 1, 1, 0, 1};
  EXPECT_EQ(Example().Correct({.rejection = {criterion}})->mask, all);
  const std::vector<uint8_t> without_third = {1, 1, 0, 0, 1};
  EXPECT_EQ(Example()
                .Correct({.rejection = {criterion},
                          .k1_bounds = CorrectionOptions::K1Bounds::kTrainOverRollout})
                ->mask,
            without_third);
}

TEST(RolloutCorrectionTest, EveryCriterionMustBeMet) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const BatchData data = RandomBatch(seed);
    std::vector<RejectionCriterion> criteria = {*RejectionCriterionFromName("token_k3"),
                                                *RejectionCriterionFromName("seq_mean_k1")};
    criteria[0].upper = 0.02;
    criteria[1].upper = 1.1;
    std::vector<uint8_t> both = data.mask;
    for (const RejectionCriterion& criterion : criteria) {
      const auto one = CorrectRollout(data.layout(), data.logprobs, data.rollout_logprobs,
                                      {.rejection = {criterion}});
      for (size_t i = 0; i < both.size(); ++i) both[i] = both[i] != 0 && one->mask[i] != 0;
    }
    EXPECT_EQ(
        CorrectRollout(data.layout(), data.logprobs, data.rollout_logprobs, {.rejection = criteria})
            ->mask,
        both);
  }
}

TEST(RolloutCorrectionTest, MaskedTokensNeverMatterEvenWhenNaN) {
  BatchData data = RandomBatch(9);
  const CorrectionOptions options = {
      .importance = ImportanceOptions{.level = RatioLevel::kSequence},
      .rejection = {*RejectionCriterionFromName("seq_sum_k2")}};
  const auto plain = CorrectRollout(data.layout(), data.logprobs, data.rollout_logprobs, options);
  FillMasked(data, std::numeric_limits<double>::quiet_NaN());
  const auto poisoned =
      CorrectRollout(data.layout(), data.logprobs, data.rollout_logprobs, options);
  EXPECT_EQ(plain->weights, poisoned->weights);
  EXPECT_EQ(plain->mask, poisoned->mask);
}

TEST(RolloutCorrectionTest, CorrectionsAreMadeByName) {
  EXPECT_FALSE(CorrectionNamed("none")->active());
  const Result<CorrectionOptions> tis = CorrectionNamed("tis", {{"level", "sequence"}});
  EXPECT_EQ(tis->importance->level, RatioLevel::kSequence);
  EXPECT_EQ(tis->importance->upper, 2);
  EXPECT_FALSE(tis->importance->lower.has_value());
  const Result<CorrectionOptions> icepop = CorrectionNamed("icepop", {{"upper", "2"}});
  EXPECT_EQ(icepop->importance->lower, 0.5);
  EXPECT_EQ(icepop->importance->upper, 2);
  const Result<CorrectionOptions> rejecting =
      CorrectionNamed("none", {{"reject_token_k1", "3"},
                               {"reject_token_k1_lower", "0.2"},
                               {"reject_seq_max_k2", "0.5"},
                               {"k1_bounds", "train_over_rollout"}});
  ASSERT_TRUE(rejecting.ok()) << rejecting.status().message();
  EXPECT_TRUE(rejecting->active());
  const std::vector<uint8_t> second = {0, 0, 0, 0, 1};
  EXPECT_EQ(Example().Correct(*rejecting)->mask, second);
}

TEST(RolloutCorrectionTest, WhatIsUnknownIsNamed) {
  EXPECT_EQ(CorrectionNamed("ice").status().message(),
            "correction = ice: must be one of none, tis, icepop");
  EXPECT_EQ(CorrectionNamed("tis", {{"lower", "1"}})
                .status()
                .message()
                .find("unknown key tis.lower (nearest: level; tis has level, upper, "),
            0U);
  EXPECT_FALSE(CorrectionNamed("none", {{"reject_seq_max_k1", "2"}}).ok());
  // A lower bound without its criterion would be a setting without effect.
  EXPECT_FALSE(CorrectionNamed("none", {{"reject_token_k1_lower", "0.5"}}).ok());
}

TEST(RolloutCorrectionTest, NamesReadBackAndThereIsNoLargestK1) {
  for (const char* name : {"token_k1", "seq_sum_k2", "seq_mean_k3", "seq_max_k2"}) {
    EXPECT_EQ(NameOf(*RejectionCriterionFromName(name)), name);
  }
  EXPECT_FALSE(RejectionCriterionFromName("seq_max_k1").has_value());
  EXPECT_FALSE(RejectionCriterionFromName("token").has_value());
}

TEST(RolloutCorrectionTest, BoundsThatBreakARuleAreNamed) {
  const auto result = Example().Correct({.importance = ImportanceOptions{.upper = 2, .lower = 3}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "importance.lower = 3: must be <= upper = 2");
}

}  // namespace
}  // namespace pace
