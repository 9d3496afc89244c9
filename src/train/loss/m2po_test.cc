#include <gtest/gtest.h>

#include <algorithm>

#include "train/loss/m2po_region.h"
#include "train/loss/one_token.h"
#include "train/test_batch.h"

namespace pace {
namespace {

// The paper's Algorithm 1 word for word: while the mean is above the budget,
// the largest leaves.
std::vector<uint8_t> NaiveKept(const TokenBatch& batch, double budget) {
  std::vector<uint8_t> kept(batch.layout.mask.begin(), batch.layout.mask.end());
  std::vector<std::pair<double, size_t>> set;
  for (size_t token = 0; token < kept.size(); ++token) {
    if (kept[token] == 0) continue;
    const double d = batch.logprobs[token] - batch.rollout_logprobs[token];
    const double advantage = batch.advantages[token];
    if ((advantage > 0 && d > 0) || (advantage < 0 && d < 0)) set.emplace_back(d * d, token);
  }
  while (!set.empty()) {
    double sum = 0;
    for (const auto& [squared, token] : set) sum += squared;
    if (sum / static_cast<double>(set.size()) <= budget) break;
    const auto largest = std::max_element(set.begin(), set.end());
    kept[largest->second] = 0;
    set.erase(largest);
  }
  return kept;
}

TEST(M2poTest, ThePaperRuleIsTheNaiveLoop) {
  int64_t num_dropped = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const BatchData data = RandomBatch(seed);
    for (const double budget : {0.0, 0.005, 0.04, 1.0, 100.0}) {
      const M2poRegion region = PaperRegion(data.tokens(), budget);
      EXPECT_EQ(region.kept, NaiveKept(data.tokens(), budget)) << seed << " " << budget;
      EXPECT_LE(region.m2_after, budget);
      num_dropped +=
          data.layout().num_policy_tokens() - std::count(region.kept.begin(), region.kept.end(), 1);
    }
  }
  EXPECT_GT(num_dropped, 100);
}

TEST(M2poTest, TheOfficialRuleKeepsTheCappedMeanWithinTheBudget) {
  int64_t num_bounded = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const BatchData data = RandomBatch(seed);
    const Result<M2poRegion> region = OfficialRegion(data.tokens(), 0.04, false);
    ASSERT_TRUE(region.ok());
    EXPECT_LE(region->m2_after, 0.04 + 1e-9);
    num_bounded += region->upper < 1e5;
  }
  EXPECT_GT(num_bounded, 10);
}

TEST(M2poTest, TokensThatMoveBackAreNeverTouched) {
  // Good tokens that shrank and bad ones that grew, however far.
  const LossResult result = LossOf("m2po", {}, {0.01, 100}, {1, -1});
  EXPECT_NEAR(result.loss, -0.01 + 100, 1e-9);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction"), 0);
}

TEST(M2poTest, ADroppedTokenKeepsItsPlaceInTheDivisor) {
  const LossResult result = LossOf("m2po", {}, {1.01, 3}, {1, 1});
  EXPECT_NEAR(result.loss, -1.01, 1e-12);
  EXPECT_EQ(result.gradient[1], 0);
  EXPECT_EQ(MetricOf(result, "train/clip_fraction"), 0.5);
}

TEST(M2poTest, WhereEvenTheSmallestIsOverTheCapTauIsTheRootOfTheBudget) {
  const NamedSettings ours = {{"rule", "official"}};
  EXPECT_NEAR(LossOf("m2po", ours, {2}, {1}).loss, -std::exp(0.2), 1e-6);
  const NamedSettings theirs = {{"rule", "official"}, {"compat", "true"}};
  EXPECT_EQ(LossOf("m2po", theirs, {2}, {1}).loss, -1);
}

TEST(M2poTest, ItSaysThatItComparesTokensOfTheMinibatch) {
  EXPECT_EQ((*MakePolicyLoss("m2po"))->scope(), LossScope::kMinibatch);
  EXPECT_EQ((*MakePolicyLoss("m2po", {{"scope", "micro_batch"}}))->scope(), LossScope::kMicroBatch);
}

TEST(M2poTest, ArealsRuleAlwaysKeepsAToken) {
  const std::vector<int64_t> offsets = {0, 3};
  const std::vector<uint8_t> mask = {1, 0, 1};
  const std::vector<double> rollout = {-1, -9, -1};
  const std::vector<double> proximal = {-3, -1, -2};
  const SequenceLayout layout = {.offsets = offsets, .mask = mask};
  const std::vector<uint8_t> last = {0, 0, 1};
  EXPECT_EQ(ArealKeptTokens(layout, rollout, proximal, 0.04), last);
  const std::vector<uint8_t> all = {1, 0, 1};
  EXPECT_EQ(ArealKeptTokens(layout, rollout, proximal, 3), all);
}

}  // namespace
}  // namespace pace
