#include <gtest/gtest.h>

#include "train/loss/one_token.h"
#include "train/test_batch.h"

namespace pace {
namespace {

ReductionWeights TokenMean(const BatchData& data) {
  return *WeighTokens(data.layout(), CountTotals(data.layout()), {});
}

TEST(DecoupledPpoTest, WithProximalEqualToRolloutItIsPpo) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    BatchData data = RandomBatch(seed);
    data.proximal_logprobs = data.rollout_logprobs;
    const LossResult ours =
        *(*MakePolicyLoss("decoupled_ppo"))->Evaluate(data.tokens(), TokenMean(data));
    const LossResult ppo = *(*MakePolicyLoss("ppo"))->Evaluate(data.tokens(), TokenMean(data));
    EXPECT_NEAR(ours.loss, ppo.loss, 1e-15);
    EXPECT_EQ(ours.gradient, ppo.gradient);
  }
}

TEST(DecoupledPpoTest, ATokenLeftOutStaysInTheDivisor) {
  BatchData data = RandomBatch(1);
  const size_t token = 0;
  data.mask[token] = 1;
  data.proximal_logprobs[token] = data.rollout_logprobs[token] + 2;  // weight e^2 > 5
  data.logprobs[token] = data.proximal_logprobs[token];
  const auto loss = MakePolicyLoss("decoupled_ppo");
  const ReductionWeights weights = TokenMean(data);
  const LossResult with = *(*loss)->Evaluate(data.tokens(), weights);
  EXPECT_EQ(with.gradient[token], 0);
  EXPECT_GT(MetricOf(with, "train/filtered_fraction"), 0);
  data.mask[token] = 0;
  const LossResult without = *(*loss)->Evaluate(data.tokens(), weights);
  EXPECT_NEAR(with.loss, without.loss, 1e-15);
}

TEST(DecoupledPpoTest, ASequenceRatioHasItsFullGradient) {
  // Geometric mean of 2 and 1/2 is 1: nothing is clipped, both tokens share.
  const LossResult result =
      LossOf("decoupled_ppo", {{"level", "sequence"}}, {2, 0.5}, {1, 3}, true);
  EXPECT_NEAR(result.loss, -2 * 2, 1e-12);
  EXPECT_NEAR(result.gradient[0], -2, 1e-12);
  EXPECT_NEAR(result.gradient[1], -2, 1e-12);
}

TEST(DecoupledPpoTest, ItNeedsBothPolicies) {
  const BatchData data = RandomBatch(1);
  TokenBatch batch = data.tokens();
  batch.proximal_logprobs = {};
  const auto result = (*MakePolicyLoss("decoupled_ppo"))->Evaluate(batch, TokenMean(data));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("proximal_logprobs"), std::string::npos);
}

}  // namespace
}  // namespace pace
