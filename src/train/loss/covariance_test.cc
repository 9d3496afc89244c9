// clip_cov and kl_cov: the losses that look at covariances.
#include <gtest/gtest.h>

#include <algorithm>

#include "train/loss/one_token.h"
#include "train/loss/token_term.h"
#include "train/test_batch.h"

namespace pace {
namespace {

int64_t NumZero(const LossResult& result, const std::vector<uint8_t>& mask) {
  int64_t count = 0;
  for (size_t i = 0; i < mask.size(); ++i) count += mask[i] != 0 && result.gradient[i] == 0;
  return count;
}

TEST(CovarianceTest, ItsMeanIsTheCovarianceOfPolicyTokens) {
  const BatchData data = RandomBatch(4);
  const std::vector<double> covariances = TokenCovariances(data.tokens());
  double xy = 0;
  double x = 0;
  double y = 0;
  double sum = 0;
  double count = 0;
  for (size_t i = 0; i < data.mask.size(); ++i) {
    if (data.mask[i] == 0) continue;
    xy += data.logprobs[i] * data.advantages[i];
    x += data.logprobs[i];
    y += data.advantages[i];
    sum += covariances[i];
    count += 1;
  }
  EXPECT_NEAR(sum / count, xy / count - x / count * y / count, 1e-12);
}

TEST(CovarianceTest, ClipCovLeavesOutTheWantedShare) {
  const BatchData data = RandomBatch(6, 20, 4);
  const ReductionWeights weights = *WeighTokens(data.layout(), CountTotals(data.layout()), {});
  const NamedSettings wide = {{"clip_low", "99"}, {"clip_high", "99"}, {"cov_low", "0.01"}};
  NamedSettings few = wide;
  few.push_back({"fraction", "0.05"});
  const auto num_tokens = static_cast<double>(data.layout().num_policy_tokens());
  const LossResult result = *(*MakePolicyLoss("clip_cov", few))->Evaluate(data.tokens(), weights);
  EXPECT_EQ(NumZero(result, data.mask), static_cast<int64_t>(0.05 * num_tokens));
  few.push_back({"seed", "1"});
  const LossResult other = *(*MakePolicyLoss("clip_cov", few))->Evaluate(data.tokens(), weights);
  EXPECT_NE(result.gradient, other.gradient);
}

TEST(CovarianceTest, KlCovHoldsBackTheLargest) {
  // The second token: most likely and best.
  const LossResult result =
      LossOf("kl_cov", {{"fraction", "0.4"}, {"kl_coefficient", "3"}}, {0.5, 2, 1}, {-1, 2, 0});
  EXPECT_NEAR(result.gradient[0], 0.5, 1e-12);
  EXPECT_NEAR(result.gradient[1], -4 + 3, 1e-12);
  EXPECT_NEAR(result.gradient[2], 0, 1e-12);
}

}  // namespace
}  // namespace pace
