#include <gtest/gtest.h>

#include "train/loss/one_token.h"
#include "train/test_batch.h"

namespace pace {
namespace {

TEST(ReinforceTest, TheGradientIsTheAdvantage) {
  const LossResult result = LossOf("reinforce", {}, {3, 0.2}, {2, -1});
  EXPECT_EQ(result.gradient[0], -2);
  EXPECT_EQ(result.gradient[1], 1);
}

TEST(ReinforceTest, ImportanceWeightsMultiplyIt) {
  const BatchData data = RandomBatch(1);
  const std::vector<double> weights(data.mask.size(), 0.5);
  TokenBatch batch = data.tokens();
  const ReductionWeights reduction = *WeighTokens(data.layout(), CountTotals(data.layout()), {});
  const auto loss = MakePolicyLoss("reinforce");
  const double plain = (*loss)->Evaluate(batch, reduction)->loss;
  batch.importance_weights = weights;
  EXPECT_NEAR((*loss)->Evaluate(batch, reduction)->loss, plain / 2, 1e-15);
}

TEST(ReinforceTest, ItNeedsNoReference) {
  const BatchData data = RandomBatch(1);
  TokenBatch batch = data.tokens();
  batch.rollout_logprobs = {};
  const auto result =
      (*MakePolicyLoss("reinforce"))
          ->Evaluate(batch, *WeighTokens(data.layout(), CountTotals(data.layout()), {}));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->metrics.empty());
}

TEST(ReinforceTest, GpgIsTheSameLossUnderAnotherReduction) {
  EXPECT_EQ(LossOf("gpg", {}, {2}, {1}).gradient, LossOf("reinforce", {}, {2}, {1}).gradient);
  EXPECT_EQ((*MakePolicyLoss("gpg"))->paper_reduction(), ReductionMode::kTokenMean);
}

}  // namespace
}  // namespace pace
