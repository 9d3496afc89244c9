#include "model/cpu/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "model/cpu/kernels/isa.h"
#include "model/cpu/naive_sampling.h"
#include "model/cpu/random_floats.h"

namespace pace {
namespace {

Sampled Draw(const std::vector<float>& logits, const SamplingOptions& options, int64_t token,
             int64_t response = 0) {
  std::vector<float> scratch;
  return Sample(logits, options, {.seed = 5, .prompt = 3, .response = response, .token = token},
                scratch);
}

// Draws many times, compares the counts with the probabilities.
void ExpectDistribution(const std::vector<float>& logits, const SamplingOptions& options) {
  const NaiveDistribution exact = NaiveTruncated(logits, options);
  constexpr int64_t kDraws = 20'000;
  std::vector<int64_t> counts(logits.size());
  for (int64_t i = 0; i < kDraws; ++i) {
    const Sampled sampled = Draw(logits, options, i);
    const auto token = static_cast<size_t>(sampled.token);
    ++counts[token];
    ASSERT_GT(exact.probabilities[token], 0) << "token " << token << " was cut";
    ASSERT_NEAR(sampled.sampled_logprob, std::log(exact.probabilities[token]), 2e-6);
    ASSERT_NEAR(sampled.logprob, NaiveLogProb(logits, options.scale(), sampled.token), 2e-6);
  }
  double chi_square = 0;
  int64_t degrees = -1;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = exact.probabilities[i] * kDraws;
    if (expected == 0) continue;
    const double difference = static_cast<double>(counts[i]) - expected;
    chi_square += difference * difference / expected;
    ++degrees;
  }
  // Mean and variance of chi-square: n and 2n. Five deviations never happen.
  const auto n = static_cast<double>(std::max<int64_t>(degrees, 1));
  EXPECT_LT(chi_square, n + 5 * std::sqrt(2 * n));
}

const std::vector<float> kLogits = {1.0F, -0.5F, 2.0F, 0.25F, 2.0F, -3.0F, 0.0F, 1.5F, -1.0F, 0.5F};

TEST(SamplerTest, DrawsFromTheFullDistribution) {
  ExpectDistribution(kLogits, {});
  ExpectDistribution(kLogits, {.temperature = 0.5});
  ExpectDistribution(kLogits, {.temperature = 2.5});
}

TEST(SamplerTest, DrawsFromWhatTruncationLeaves) {
  ExpectDistribution(kLogits, {.top_k = 3});
  ExpectDistribution(kLogits, {.top_p = 0.7});
  ExpectDistribution(kLogits, {.min_p = 0.3});
  ExpectDistribution(kLogits, {.temperature = 1.5, .top_k = 6, .top_p = 0.8, .min_p = 0.25});
}

TEST(SamplerTest, DrawsAcrossBlocksOfALargeVocabulary) {
  // Almost all of the weight lies on a few tokens of different blocks.
  std::vector<float> logits(5000, -30.0F);
  for (const size_t token : {0U, 1023U, 1024U, 2500U, 4999U}) logits[token] = 0.0F;
  std::map<TokenId, int> counts;
  for (int64_t i = 0; i < 2000; ++i) ++counts[Draw(logits, {}, i).token];
  EXPECT_EQ(counts.size(), 5U);
  for (const auto& [token, count] : counts) EXPECT_NEAR(count, 400, 100) << token;
}

TEST(SamplerTest, GreedyTakesTheFirstOfTheLargest) {
  const Sampled sampled = Draw(kLogits, {.temperature = 0}, 0);
  EXPECT_EQ(sampled.token, 2);
  EXPECT_EQ(sampled.sampled_logprob, 0.0F);
  EXPECT_NEAR(sampled.logprob, NaiveLogProb(kLogits, 1.0, 2), 1e-6);
  std::vector<float> large(3000, 1.0F);
  large[2998] = large[1700] = 1.5F;
  EXPECT_EQ(Draw(large, {.temperature = 0}, 0).token, 1700);
}

TEST(SamplerTest, EveryKeyDrawsItsOwnNumber) {
  const std::vector<float> logits(1 << 14, 0.0F);
  std::vector<float> scratch;
  const auto draw = [&](const SampleKey& key) { return Sample(logits, {}, key, scratch).token; };
  const SampleKey base = {.seed = 1, .prompt = 2, .response = 3, .token = 4};
  std::set<TokenId> seen = {draw(base)};
  for (SampleKey key : {SampleKey{2, 2, 3, 4}, SampleKey{1, 3, 3, 4}, SampleKey{1, 2, 4, 4},
                        SampleKey{1, 2, 3, 5}, SampleKey{1, 3, 2, 4}}) {
    seen.insert(draw(key));
  }
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(draw(base), draw(base));
  // The largest prompt and response do not run into each other.
  const int64_t last_response = (int64_t{1} << 24) - 1;
  EXPECT_NE(draw({1, 0, last_response, 0}), draw({1, 1, 0, 0}));
}

TEST(SamplerTest, ScoresEqualWhatSamplingReportedToTheBit) {
  const std::vector<float> logits = RandomFloats(3001, 17, 3.0);
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.temperature = 0.6}, SamplingOptions{.temperature = 0},
        SamplingOptions{.temperature = 0.8, .top_k = 40, .top_p = 0.9}}) {
    for (int64_t i = 0; i < 20; ++i) {
      const Sampled sampled = Draw(logits, options, i);
      EXPECT_EQ(LogProbOf(logits, options.scale(), sampled.token), sampled.logprob);
    }
  }
}

TEST(SamplerTest, LogProbsAreAccurateAtALargeVocabulary) {
  const std::vector<float> logits = RandomFloats(151'936, 18, 2.0);
  for (const double scale : {1.0, 0.7, 1.3}) {
    for (const TokenId target : {0, 77, 151'935}) {
      const double exact = NaiveLogProb(logits, scale, target);
      EXPECT_NEAR(LogProbOf(logits, scale, target), exact, 1.5e-6) << scale;
    }
  }
}

TEST(SamplerTest, LevelsDrawTheSameTokens) {
  const std::vector<float> logits = RandomFloats(2077, 19, 2.0);
  std::vector<float> scratch;
  for (int64_t i = 0; i < 30; ++i) {
    const SamplingOptions options = {.temperature = 0.9, .top_p = i % 2 == 0 ? 1.0 : 0.8};
    const SampleKey key = {.seed = 1, .prompt = i, .response = 0, .token = 0};
    const Sampled first = SampleWith(KernelsOf(Isa::kPortable), logits, options, key, scratch);
    for (const Isa isa : IsaLevels()) {
      const Sampled other = SampleWith(KernelsOf(isa), logits, options, key, scratch);
      EXPECT_EQ(other.token, first.token);
      EXPECT_EQ(other.logprob, first.logprob);
      EXPECT_EQ(other.sampled_logprob, first.sampled_logprob);
    }
  }
}

TEST(SamplerTest, StaysInRangeWhateverTheLogits) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits : {std::vector<float>{nan, nan, nan},
                                           {-infinity, -infinity},
                                           {infinity, 0.0F},
                                           {0.0F},
                                           {nan, 1.0F, 2.0F},
                                           {1e38F, -1e38F}}) {
    for (const SamplingOptions& options :
         {SamplingOptions{}, SamplingOptions{.temperature = 0}, SamplingOptions{.top_k = 1},
          SamplingOptions{.top_p = 0.5}, SamplingOptions{.min_p = 0.5}}) {
      const TokenId token = Draw(logits, options, 1).token;
      EXPECT_GE(token, 0);
      EXPECT_LT(static_cast<size_t>(token), logits.size());
    }
  }
}

TEST(SamplingOptionsTest, RefusesWhatHasNoMeaning) {
  EXPECT_TRUE(SamplingOptions{}.Validate().ok());
  EXPECT_TRUE(SamplingOptions{.temperature = 0}.Validate().ok());
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = 1e-5},
        SamplingOptions{.temperature = std::nan("")},
        SamplingOptions{.temperature = std::numeric_limits<double>::infinity()},
        SamplingOptions{.top_k = -1}, SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.1},
        SamplingOptions{.min_p = -0.1}, SamplingOptions{.min_p = 1.1}}) {
    EXPECT_FALSE(options.Validate().ok());
  }
  EXPECT_EQ(SamplingOptions{.top_p = 0}.Validate().message(),
            "top_p = 0: must be in (0, 1] (1 keeps all)");
}

}  // namespace
}  // namespace pace
