#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "model/cpu/kernels/isa.h"
#include "model/cpu/naive_sampling.h"
#include "model/cpu/random_floats.h"
#include "model/cpu/sampler.h"

namespace pace {
namespace {

const Kernels& Best() {
  return KernelsOf(BestIsa());
}

std::vector<TokenId> Kept(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<float> terms(logits.size());
  SumTerms(Best(), logits, options.scale(), terms);
  return Truncate(Best(), logits, terms, options);
}

std::vector<TokenId> NaiveKept(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<TokenId> kept;
  const NaiveDistribution distribution = NaiveTruncated(logits, options);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (distribution.probabilities[i] > 0) kept.push_back(static_cast<TokenId>(i));
  }
  return kept;
}

TEST(TruncationTest, TheKthLargestIsThatOfASort) {
  for (const int64_t n : {1, 5, 64, 65, 1000, 5003}) {
    const std::vector<float> values = RandomFloats(n, static_cast<uint64_t>(n));
    std::vector<float> sorted = values;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (const int64_t k : {int64_t{1}, int64_t{2}, n / 100, n / 3, n - 1, n}) {
      if (k < 1 || k > n) continue;
      EXPECT_EQ(KthLargest(Best(), values, k), sorted[static_cast<size_t>(k - 1)]) << k;
    }
  }
}

TEST(TruncationTest, AgreesWithAFullSort) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const double deviation = seed % 3 == 0 ? 0.1 : 3.0;
    const std::vector<float> logits = RandomFloats(seed % 2 == 0 ? 300 : 2500, seed, deviation);
    for (const SamplingOptions& options :
         {SamplingOptions{.top_k = 1}, SamplingOptions{.top_k = 50}, SamplingOptions{.top_k = 299},
          SamplingOptions{.top_p = 0.01}, SamplingOptions{.top_p = 0.5},
          SamplingOptions{.top_p = 0.95}, SamplingOptions{.min_p = 0.05},
          SamplingOptions{.temperature = 0.7, .top_k = 100, .top_p = 0.9, .min_p = 0.02}}) {
      ASSERT_EQ(Kept(logits, options), NaiveKept(logits, options)) << "seed " << seed;
    }
  }
}

TEST(TruncationTest, TopKKeepsThoseAsLikelyAsTheLast) {
  EXPECT_EQ(Kept({3, 1, 2, 2, 2, 0}, {.top_k = 2}), (std::vector<TokenId>{0, 2, 3, 4}));
}

TEST(TruncationTest, TopPKeepsTheFewestThatReachIt) {
  // Terms 1, 1, 1, 1: each is a quarter, exactly.
  const std::vector<float> even = {0, 0, 0, 0};
  EXPECT_EQ(Kept(even, {.top_p = 0.25}), (std::vector<TokenId>{0}));
  EXPECT_EQ(Kept(even, {.top_p = 0.2501}), (std::vector<TokenId>{0, 1}));
  EXPECT_EQ(Kept(even, {.top_p = 0.75}), (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(Kept(even, {.top_p = 0.9999}), (std::vector<TokenId>{0, 1, 2, 3}));
}

TEST(TruncationTest, TheLikeliestTokenAlwaysStays) {
  const std::vector<float> logits = {0, 5, 1};
  for (const SamplingOptions& options :
       {SamplingOptions{.top_k = 1}, SamplingOptions{.top_p = 1e-9}, SamplingOptions{.min_p = 1}}) {
    EXPECT_EQ(Kept(logits, options), (std::vector<TokenId>{1}));
  }
}

TEST(TruncationTest, TopPCountsOnWhatTopKLeft) {
  // Of the two that top-k leaves, the first has more than half.
  EXPECT_EQ(Kept({2, 1.5, 1.4F, 1.3F, 1.2F}, {.top_k = 2, .top_p = 0.6}),
            (std::vector<TokenId>{0}));
  EXPECT_GT(Kept({2, 1.5, 1.4F, 1.3F, 1.2F}, {.top_p = 0.6}).size(), 2U);
}

}  // namespace
}  // namespace pace
