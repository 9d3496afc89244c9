// What one rank of several keeps, counted by LibTorch's allocator.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <memory>

#include "model/tiny_configs.h"
#include "train/lonely_rank.h"
#include "train/small_trainer.h"
#include "train/torch_trainer.h"

namespace pace {
namespace {

ModelConfig MemoryConfig(Architecture architecture) {
  ModelConfig config = TinyModel(architecture);
  config.vocab_size = 2048;
  config.hidden_size = 64;
  config.intermediate_size = 256;
  return config;
}

struct Held {
  double bytes = 0;       // weights, moments and gradients of this rank
  double parameters = 0;  // of the network
};

Held HeldBy(Architecture architecture, ShardMode mode, int64_t num_ranks) {
  at::set_num_threads(1);
  const auto memory = std::make_shared<LiveMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  const ModelConfig config = MemoryConfig(architecture);
  LonelyRank ranks(num_ranks, *memory);
  TrainerOptions options = Plain();
  options.shard = mode;
  const std::unique_ptr<TorchTrainer> trainer =
      TorchTrainer::Create(
          TrainingNetwork::Create(config, RandomWeights(config, 3, 0.1), {}).value(), options,
          std::nullopt, &ranks)
          .value();
  const Result<MetricList> step = trainer->Step(Sequences(config, 2));
  EXPECT_TRUE(step.ok()) << step.status().message();
  return {.bytes = static_cast<double>(ranks.bytes()),
          .parameters = static_cast<double>(config.num_parameters())};
}

// A float32 each: master weight, two moments, gradient.
constexpr double kBytesPerParameter = 16;
constexpr double kAllowance = 0.02;

TEST(ShardMemoryTest, FullKeepsOnePartOfEverything) {
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    for (const int64_t num_ranks : {2, 3, 4, 8}) {
      const Held held = HeldBy(architecture, ShardMode::kFull, num_ranks);
      const double share = held.bytes / (kBytesPerParameter * held.parameters);
      EXPECT_LE(share, 1.0 / static_cast<double>(num_ranks) + kAllowance) << num_ranks;
      EXPECT_GE(share, 1.0 / static_cast<double>(num_ranks)) << num_ranks;
    }
  }
}

TEST(ShardMemoryTest, GradientsKeepsOnePartBesideTheWholeWeights) {
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    for (const int64_t num_ranks : {2, 3, 4, 8}) {
      const Held held = HeldBy(architecture, ShardMode::kGradients, num_ranks);
      // The rank's master weights are its part of the weights.
      const double weights = 4 * held.parameters;
      const double part = weights / static_cast<double>(num_ranks);
      const double share = (held.bytes - weights + part) / (kBytesPerParameter * held.parameters);
      EXPECT_LE(share, 1.0 / static_cast<double>(num_ranks) + kAllowance) << num_ranks;
      EXPECT_GE(share, 1.0 / static_cast<double>(num_ranks)) << num_ranks;
    }
  }
}

// A layer's weights are there while it is computed, also when its graph waits for the backward
// pass.
TEST(ShardMemoryTest, FullKeepsNoLayerBetweenItsForwardAndItsBackwardPass) {
  at::set_num_threads(1);
  ModelConfig config = MemoryConfig(Architecture::kQwen3);
  config.hidden_size = 256;
  config.intermediate_size = 1024;
  config.num_layers = 4;
  const auto memory = std::make_shared<LiveMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  LonelyRank ranks(4, *memory);
  TrainerOptions options = Plain();
  options.shard = ShardMode::kFull;
  const std::unique_ptr<TorchTrainer> trainer =
      TorchTrainer::Create(
          TrainingNetwork::Create(config, RandomWeights(config, 3, 0.1), {}).value(), options,
          std::nullopt, &ranks)
          .value();
  const size_t before = ranks.at_gathers().size();
  ASSERT_TRUE(trainer->Step(Sequences(config, 1)).ok());
  // What is outside of layers, the layers forward, all but the last again.
  const auto num_layers = static_cast<size_t>(config.num_layers);
  ASSERT_EQ(ranks.at_gathers().size(), before + 2 * num_layers);
  // The second layer is gathered while the first is computed, the last while the one before it is.
  const int64_t second = ranks.at_gathers()[before + 2];
  const int64_t last = ranks.at_gathers()[before + num_layers];
  const int64_t of_mlp = 3 * config.hidden_size * config.intermediate_size * 4;
  // Between the two: activations of two layers.
  EXPECT_LT(last - second, of_mlp);
}

}  // namespace
}  // namespace pace
