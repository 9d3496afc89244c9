#include "model/cpu/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/cpu/kernels/isa.h"
#include "model/cpu/random_floats.h"

namespace pace {
namespace {

struct Choice {
  std::vector<int64_t> experts;
  std::vector<float> weights;
};

Choice Choose(const std::vector<float>& logits, int64_t num_chosen, bool normalize) {
  MoeConfig config;
  config.num_experts = static_cast<int64_t>(logits.size());
  config.num_experts_per_token = num_chosen;
  config.normalize_weights = normalize;
  Choice choice;
  choice.experts.resize(static_cast<size_t>(num_chosen));
  choice.weights.resize(static_cast<size_t>(num_chosen));
  std::vector<float> scratch(logits.size());
  ChooseExperts(KernelsOf(BestIsa()), config, logits, scratch, choice.experts, choice.weights);
  return choice;
}

TEST(ChooseExpertsTest, TakesTheLikeliestByFallingProbability) {
  const std::vector<float> logits = RandomFloats(23, 1, 2.0);
  const Choice choice = Choose(logits, 5, false);
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  order.resize(5);
  EXPECT_EQ(choice.experts, order);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (size_t i = 0; i < 5; ++i) {
    const double exact = std::exp(logits[static_cast<size_t>(order[i])]) / sum;
    EXPECT_NEAR(choice.weights[i], exact, 1e-6);
  }
}

TEST(ChooseExpertsTest, TheLowestIndexWinsAmongEquals) {
  EXPECT_EQ(Choose({1, 3, 3, 2, 3}, 4, false).experts, (std::vector<int64_t>{1, 2, 4, 3}));
}

TEST(ChooseExpertsTest, NormalizedWeightsSumToOne) {
  const Choice choice = Choose(RandomFloats(16, 2), 4, true);
  EXPECT_NEAR(std::accumulate(choice.weights.begin(), choice.weights.end(), 0.0), 1.0, 1e-6);
}

TEST(ChooseExpertsTest, StaysInRangeWithoutNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t expert : Choose({nan, nan, nan, nan}, 3, true).experts) {
    EXPECT_GE(expert, 0);
    EXPECT_LT(expert, 4);
  }
}

}  // namespace
}  // namespace pace
