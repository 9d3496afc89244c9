#include "model/reference_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/test_data.h"
#include "model/reference_checkpoints.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

double LargestDifference(const ReferenceResult& ours, const ReferenceCase& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.logits.size(); ++i) {
    const std::vector<double>& logits = expected.logits[i];
    for (size_t token = 0; token < logits.size(); ++token) {
      largest =
          std::max(largest, std::abs(ours.logits[expected.positions[i]][token] - logits[token]));
    }
  }
  return largest;
}

TEST(ReferenceForwardTest, AgreesWithTheReferenceData) {
  const std::filesystem::path models = SharedData() / "models";
  if (!std::filesystem::exists(models)) GTEST_SKIP() << WithoutData(models, 20);
  const auto checkpoints = ReadReferenceCheckpoints(models);
  ASSERT_TRUE(checkpoints.ok()) << checkpoints.status().message();
  int num_cases = 0;
  for (const ReferenceCheckpoint& checkpoint : *checkpoints) {
    for (const ReferenceCase& one : checkpoint.cases) {
      const ReferenceResult ours =
          ReferenceForward(checkpoint.config, checkpoint.weights, one.input_ids);
      EXPECT_LT(LargestDifference(ours, one), 5e-5) << checkpoint.path << one.name;
      ++num_cases;
    }
  }
  EXPECT_GT(num_cases, 0);
}

TEST(ReferenceForwardTest, ATokenSeesNoLaterOne) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 5, 0.3);
    const std::vector<TokenId> tokens = {1, 7, 3, 50, 7};
    const ReferenceResult whole = ReferenceForward(tiny.config, weights, tokens);
    const ReferenceResult part = ReferenceForward(tiny.config, weights, std::span(tokens).first(3));
    EXPECT_EQ(part.logits.back(), whole.logits[2]) << tiny.name;
  }
}

}  // namespace
}  // namespace pace
