#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "bench/bench_model.h"
#include "bench/reprefill.h"
#include "model/devices.h"

namespace pace {
namespace {

TEST(StepBytesTest, ADenseStepReadsAllWeightsAndTheCache) {
  const ModelConfig config = *NamedShape("tiny");
  const double weights = 2.0 * static_cast<double>(config.num_parameters());
  EXPECT_DOUBLE_EQ(StepBytes(config, 1, 0, 0), weights);
  // Keys and values of 8 layers, 2 heads of 64.
  EXPECT_DOUBLE_EQ(StepBytes(config, 3, 10, 0) - weights, 3 * 10 * 2.0 * (8 * 2 * 2 * 64));
}

TEST(StepBytesTest, OfAMixtureOnlyTheSelectedExpertsCount) {
  const ModelConfig config = *NamedShape("qwen3-30b-a3b");
  EXPECT_NEAR(1e-9 * static_cast<double>(config.num_parameters()), 30.53, 0.01);
  const double none = StepBytes(config, 1, 0, 0);
  // Attention, norms, routers and the output projection; not the embedding.
  EXPECT_NEAR(1e-9 * none, 2 * (48 * (2.0 * 2048 * 4608 + 2048 * 128) + 2048 * 151936) * 1e-9,
              1e-3);
  EXPECT_DOUBLE_EQ(StepBytes(config, 1, 0, 48 * 8) - none, 2.0 * 48 * 8 * 3 * 2048 * 768);
  // With every expert all weights but the embedding are read.
  EXPECT_DOUBLE_EQ(StepBytes(config, 1, 0, 48 * 128),
                   2.0 * static_cast<double>(config.num_parameters() - int64_t{151936} * 2048));
}

TEST(ReprefillTest, EveryResponseIsReprefilledOnceAndScored) {
  const ModelConfig config = *NamedShape("tiny");
  const ReprefillOptions options{
      .num_responses = 2, .num_tokens = 60, .pass_tokens = 80, .repetitions = 2};
  Result<std::unique_ptr<Decoder>> decoder = CreateDecoder(
      DeviceKind::kCpu, config, {.num_blocks = ReprefillBlocks(options), .cache_states = true});
  ASSERT_TRUE(decoder.ok()) << decoder.status().message();
  auto weights = (*decoder)->Prepare(RandomWeights(config, 1));
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  const auto costs = MeasureReprefill(std::move(*decoder), std::move(*weights), options);
  ASSERT_TRUE(costs.ok()) << costs.status().message();
  ASSERT_EQ(costs->size(), 2U);
  for (const ReprefillCost& cost : *costs) {
    EXPECT_EQ(cost.num_rows, 2 * 60);
    EXPECT_EQ(cost.num_scored, 2 * (60 - kReprefillPrompt));
    EXPECT_GT(cost.scoring_seconds, 0);
    EXPECT_LT(cost.scoring_seconds, cost.seconds);
  }
}

}  // namespace
}  // namespace pace
